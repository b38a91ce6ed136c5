"""Registration errors: why something is not registered in a Universe.

RegistrationError
├── NotATool         a function that cannot be one; also a TypeError
├── NameTaken        two tools would have one name, here or in a dialect
├── MiddlewareClash  two middlewares have one uid, or one is critical here and not there
└── NotBound         a method is a tool, and its class was never bound
"""

from __future__ import annotations


class RegistrationError(Exception):
    """The root. ``str()`` is a sentence that names the places in the code."""


class NotATool(RegistrationError, TypeError):
    """A function that cannot be a tool."""

    def __init__(self, origin: str, why: str) -> None:
        super().__init__(f"{origin} cannot be a tool: {why}")


class ToolNameTaken(RegistrationError, ValueError):
    """Two tools would have one name, here or in a dialect."""


class MiddlewareClash(RegistrationError, ValueError):
    """Two middlewares have one uid, or one is critical here and not there."""


class NotBound(RegistrationError):
    """A method is a tool, and its class was never bound."""

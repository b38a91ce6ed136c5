"""Runtimes: which one a box gets, and whether code that nobody vouches for may run in it.

The operator names them (``TOOLHUB_SANDBOX_RUNTIMES``): ``default`` for every box, ``untrusted`` for what a policy calls
untrusted. The name says nothing about what a runtime keeps apart; what was seen of it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from invocations.sandbox.base import SandboxUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from invocations.sandbox.base import Profile
    from invocations.sandbox.isolation.isolation_check import IsolationResult

DEFAULT, UNTRUSTED = "default", "untrusted"
_LOOK = "`manage.py doctor --sandbox` shows every wall."


class Runtimes:
    """``examine`` tells what was seen of a runtime; it is asked for untrusted code only."""

    def __init__(self, names: Mapping[str, str], examine: Callable[[str], IsolationResult]) -> None:
        self.names = names
        self._examine = examine

    def choose(self, profile: Profile) -> str:
        """The runtime's name, empty for the engine's own choice. ``SandboxUnavailable`` when nothing here is fit for it."""
        if not profile.untrusted:
            return self.names.get(DEFAULT, "")
        name = self.names.get(UNTRUSTED, "")
        if not name:
            raise SandboxUnavailable(
                "No runtime is set aside for untrusted tools, so this one was not run. Operators: name one as "
                f'"{UNTRUSTED}" in TOOLHUB_SANDBOX_RUNTIMES; the default one may be named there too, if its walls are enough.'
            )
        if why := explain_refusal(self._examine(name)):
            raise SandboxUnavailable(why)
        return name


def explain_refusal(seen: IsolationResult) -> str:
    """A sentence that names what stands in the way; empty when nothing does. What could not be told stands in the way."""
    if seen.why:
        return f"The runtime {seen.runtime} for untrusted tools cannot be used: {seen.why}"
    if not seen.missing:
        return ""
    first, *more = seen.missing
    how = "does not hold" if first.holds is False else "could not be verified"
    others = f" (and {len(more)} more)" if more else ""
    return f"Untrusted tools are not run with {seen.runtime}: the wall “{first.name}”{others} {how}: {first.detail}. {_LOOK}"

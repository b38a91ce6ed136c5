"""Name atoms: the tools of a Universe that a name means.

Tools of a Universe have free names, such as ``Bank__transfer`` or ``quote.get``; those of a hub have ids of three segments. So these
two atoms are others than :class:`~unitools.expressions.values.Exact` and :class:`~unitools.expressions.values.Prefix`: they are
written ``name:quote.get`` and ``name:Bank__*``, and a hub has no use for them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from unitools.expressions.values import Expression, Subject

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
NAMES_ARE = "letters, digits, _, . and -, at most 128, no . or - first"


@dataclass(frozen=True, slots=True)
class Name(Expression):
    """One tool by its name in a Universe."""

    name: str

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"{self.name[:130]!r} is no name of a tool: {NAMES_ARE}.")

    def matches(self, subject: Subject) -> bool:
        return subject.name == self.name

    def to_json(self) -> Any:
        return {"name": self.name}

    def __str__(self) -> str:
        return f"name:{self.name}"


@dataclass(frozen=True, slots=True)
class Prefix(Expression):
    """The tools whose names in a Universe begin so, letter by letter: ``Prefix("Bank__")``."""

    prefix: str

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.prefix):
            raise ValueError(f"{self.prefix[:130]!r} begins no name of a tool: {NAMES_ARE}.")

    def matches(self, subject: Subject) -> bool:
        return subject.name.startswith(self.prefix)

    def to_json(self) -> Any:
        return {"name_prefix": self.prefix}

    def __str__(self) -> str:
        return f"name:{self.prefix}*"

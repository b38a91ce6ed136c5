"""Values: what a set of tools is, as a value.

Hashable, printable, JSON-able. Equal sets of words have equal forms: parts are flat, sorted and there once.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from unitools.manifest import manifest_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unitools.manifest import Manifest

_PROPERTIES = manifest_schema()["properties"]
EFFECTS: tuple[str, ...] = tuple(_PROPERTIES["side_effect"]["enum"])
SAFETY_CLASSES: tuple[str, ...] = tuple(_PROPERTIES["safety_class"]["enum"])
DOMAINS: tuple[str, ...] = tuple(_PROPERTIES["capabilities"]["properties"])

_SEGMENT = "[a-z][a-z0-9_]*"
_ID = re.compile(rf"{_SEGMENT}(\.{_SEGMENT}){{2}}")
_PREFIX = re.compile(rf"{_SEGMENT}(\.{_SEGMENT})?")
_TAG = re.compile("[a-z0-9][a-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class Subject:
    """What an expression can ask about a tool."""

    id: str
    tags: frozenset[str] = frozenset()
    side_effect: str = "None"
    safety_class: str = "Low"
    domains: frozenset[str] = frozenset()
    name: str = ""  # in a Universe; a hub knows its tools by id


def build_subject(manifest: Manifest) -> Subject:
    """A tool as its manifest describes it."""
    return Subject(
        manifest.id, frozenset(manifest.tags), manifest.side_effect, manifest.safety_class, frozenset(manifest.domains)
    )


class Expression(ABC):
    """A set of tools. Combine with ``&``, ``|`` and ``~``."""

    __slots__ = ()

    @abstractmethod
    def matches(self, subject: Subject) -> bool: ...

    @abstractmethod
    def to_json(self) -> Any: ...

    def __and__(self, other: Expression) -> Expression:
        return all_of((self, other)) if isinstance(other, Expression) else NotImplemented

    def __or__(self, other: Expression) -> Expression:
        return any_of((self, other)) if isinstance(other, Expression) else NotImplemented

    def __invert__(self) -> Expression:
        return self.part if isinstance(self, Not) else Not(self)

    def __bool__(self) -> NoReturn:
        """``Tag("a") and Tag("b")`` would be one of the two, so nobody may ask."""
        raise TypeError(
            "An expression is neither true nor false. Combine expressions by &, | and ~, not by and, or and not."
        )


@dataclass(frozen=True, slots=True)
class Everything(Expression):
    """``*``"""

    def matches(self, subject: Subject) -> bool:
        return True

    def to_json(self) -> Any:
        return {"any_tool": True}

    def __str__(self) -> str:
        return "*"


@dataclass(frozen=True, slots=True)
class Exact(Expression):
    """One tool by its id."""

    id: str

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"{self.id!r} is no tool id: it has three segments, group.package.name.")

    def matches(self, subject: Subject) -> bool:
        return subject.id == self.id

    def to_json(self) -> Any:
        return {"id": self.id}

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class Prefix(Expression):
    """All tools of a group ``a``, or of a package ``a.b``. Segments are whole: ``a.b`` does not hold ``a.bc.d``."""

    prefix: str

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix):
            raise ValueError(f"{self.prefix!r} is no prefix: it is a group, or group.package.")

    def matches(self, subject: Subject) -> bool:
        return subject.id.startswith(self.prefix + ".")

    def to_json(self) -> Any:
        return {"prefix": self.prefix}

    def __str__(self) -> str:
        return f"{self.prefix}.*"


@dataclass(frozen=True, slots=True)
class Tag(Expression):
    """Tools that carry the tag."""

    name: str

    def __post_init__(self) -> None:
        if not _TAG.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no tag: lower-case letters, digits, _ and -, at most 40 characters.")

    def matches(self, subject: Subject) -> bool:
        return self.name in subject.tags

    def to_json(self) -> Any:
        return {"tag": self.name}

    def __str__(self) -> str:
        return f"tag:{self.name}"


@dataclass(frozen=True, slots=True)
class Effect(Expression):
    """Tools with the side effect."""

    name: str

    def __post_init__(self) -> None:
        _check_one_of(self.name, EFFECTS, "side effect")

    def matches(self, subject: Subject) -> bool:
        return subject.side_effect == self.name

    def to_json(self) -> Any:
        return {"effect": self.name}

    def __str__(self) -> str:
        return f"effect:{self.name}"


@dataclass(frozen=True, slots=True)
class Safety(Expression):
    """Tools of the safety class."""

    name: str

    def __post_init__(self) -> None:
        _check_one_of(self.name, SAFETY_CLASSES, "safety class")

    def matches(self, subject: Subject) -> bool:
        return subject.safety_class == self.name

    def to_json(self) -> Any:
        return {"safety": self.name}

    def __str__(self) -> str:
        return f"safety:{self.name}"


@dataclass(frozen=True, slots=True)
class Domain(Expression):
    """Tools that ask for capabilities of the domain."""

    name: str

    def __post_init__(self) -> None:
        _check_one_of(self.name, DOMAINS, "capability domain")

    def matches(self, subject: Subject) -> bool:
        return self.name in subject.domains

    def to_json(self) -> Any:
        return {"domain": self.name}

    def __str__(self) -> str:
        return f"domain:{self.name}"


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """Every tool that is not in ``part``. Build it with ``~``, which takes a second one away."""

    part: Expression

    def matches(self, subject: Subject) -> bool:
        return not self.part.matches(subject)

    def to_json(self) -> Any:
        return {"not": self.part.to_json()}

    def __str__(self) -> str:
        return f"~({self.part})" if isinstance(self.part, And | Or) else f"~{self.part}"


@dataclass(frozen=True, slots=True)
class And(Expression):
    """The tools in all parts. Build it with ``&`` or :func:`all_of`, which keep the parts flat and sorted."""

    parts: tuple[Expression, ...]

    def matches(self, subject: Subject) -> bool:
        return all(part.matches(subject) for part in self.parts)

    def to_json(self) -> Any:
        return {"all": [part.to_json() for part in self.parts]}

    def __str__(self) -> str:
        return " & ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """The tools in any part. Build it with ``|`` or :func:`any_of`, which keep the parts flat and sorted."""

    parts: tuple[Expression, ...]

    def matches(self, subject: Subject) -> bool:
        return any(part.matches(subject) for part in self.parts)

    def to_json(self) -> Any:
        return {"any": [part.to_json() for part in self.parts]}

    def __str__(self) -> str:
        return " | ".join(str(part) for part in self.parts)


def all_of(parts: Iterable[Expression]) -> Expression:
    """The intersection; at least one part."""
    flat = _flat(parts, And)
    return flat[0] if len(flat) == 1 else And(flat)


def any_of(parts: Iterable[Expression]) -> Expression:
    """The union; at least one part."""
    flat = _flat(parts, Or)
    return flat[0] if len(flat) == 1 else Or(flat)


def _flat(parts: Iterable[Expression], kind: type[And | Or]) -> tuple[Expression, ...]:
    found = {inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,))}
    if not found:
        raise ValueError("An expression needs at least one part.")
    return tuple(sorted(found, key=str))


def _check_one_of(name: str, known: tuple[str, ...], what: str) -> None:
    if name not in known:
        raise ValueError(f"{name!r} is no {what}. Use one of: {', '.join(known)}.")


def compute_specificity(expression: Expression) -> int:
    """How narrowly an expression names its tools: an exact id before a longer prefix before a tag before ``*``.

    An intersection is a little narrower than its narrowest part, a union as wide as its widest, and what is left after
    taking something away hardly narrower than ``*``.
    """
    match expression:
        case Exact():
            return 400
        case Prefix():
            return 200 + 20 * (expression.prefix.count(".") + 1)
        case Tag() | Effect() | Safety() | Domain():
            return 100
        case Not():
            return 10
        case And():
            return max(map(compute_specificity, expression.parts)) + min(len(expression.parts) - 1, 9)
        case Or():
            return min(map(compute_specificity, expression.parts))
        case _:
            return 0

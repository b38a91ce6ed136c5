"""Which tools does an expression name?

``commerce.* & ~tag:beta | effect:Read`` as a value: hashable, printable, parseable, JSON-able. Atoms are ``*``, an exact id
``a.b.c``, a prefix ``a.*`` or ``a.b.*``, ``tag:x``, ``effect:Read``, ``safety:Low`` and ``domain:net``; ``~`` binds tighter
than ``&``, and ``&`` tighter than ``|``. Equal sets of words have equal forms: parts are flat, sorted and there once, so
``parse(str(e)) == e`` for everything that the operators build within the bounds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from unitools.manifest import manifest_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from unitools.manifest import Manifest

MAX_LENGTH = 500
MAX_NESTING = 16

_PROPERTIES = manifest_schema()["properties"]
EFFECTS: tuple[str, ...] = tuple(_PROPERTIES["side_effect"]["enum"])
SAFETY_CLASSES: tuple[str, ...] = tuple(_PROPERTIES["safety_class"]["enum"])
DOMAINS: tuple[str, ...] = tuple(_PROPERTIES["capabilities"]["properties"])

_SEGMENT = "[a-z][a-z0-9_]*"
_ID = re.compile(rf"{_SEGMENT}(\.{_SEGMENT}){{2}}")
_PREFIX = re.compile(rf"{_SEGMENT}(\.{_SEGMENT})?")
_TAG = re.compile("[a-z0-9][a-z0-9_-]{0,39}")
_TOKEN = re.compile(r"\s*(?:(?P<sign>[&|~()])|(?P<word>[A-Za-z0-9_.:*-]+)|(?P<end>$)|(?P<other>.))", re.DOTALL)
_EXAMPLES = "Write *, an id such as shop.prices.get_quote, a prefix such as shop.*, tag:x, effect:Read, safety:Low or domain:net."


class ExpressionError(ValueError):
    """The text is no expression. ``position`` counts characters from 0."""

    def __init__(self, position: int, sentence: str) -> None:
        self.position = position
        self.sentence = sentence
        super().__init__(f"At character {position + 1}: {sentence}")


@dataclass(frozen=True, slots=True)
class Subject:
    """What an expression can ask about a tool."""

    id: str
    tags: frozenset[str] = frozenset()
    side_effect: str = "None"
    safety_class: str = "Low"
    domains: frozenset[str] = frozenset()


def subject_of(manifest: Manifest) -> Subject:
    """A tool as its manifest describes it."""
    return Subject(
        manifest.id, frozenset(manifest.tags), manifest.side_effect, manifest.safety_class, frozenset(manifest.domains)
    )


class Expression:
    """A set of tools. Combine with ``&``, ``|`` and ``~``."""

    __slots__ = ()

    def matches(self, subject: Subject) -> bool:
        raise NotImplementedError

    def to_json(self) -> Any:
        raise NotImplementedError

    def __and__(self, other: Expression) -> Expression:
        return all_of((self, other))

    def __or__(self, other: Expression) -> Expression:
        return any_of((self, other))

    def __invert__(self) -> Expression:
        return self.part if isinstance(self, Not) else Not(self)


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


# Reading.


def parse(text: str) -> Expression:
    """The expression that a text writes. Raises :class:`ExpressionError`, a ValueError with position and sentence."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(MAX_LENGTH, f"An expression has at most {MAX_LENGTH} characters.")
    return _Reader(text).read()


@lru_cache(maxsize=10_000)
def parsed(text: str) -> Expression:
    """As :func:`parse`, remembered: for expressions that are stored and asked on every call."""
    return parse(text)


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text))
        self.index = 0

    def read(self) -> Expression:
        found = self._union(0)
        position, word = self.tokens[self.index]
        if word == ")":
            raise ExpressionError(position, "This ) closes nothing.")
        if word:
            raise ExpressionError(position, f"Before {word} stands no & or |.")
        return found

    def _take(self, sign: str) -> bool:
        if self.tokens[self.index][1] != sign:
            return False
        self.index += 1
        return True

    def _union(self, depth: int) -> Expression:
        parts = [self._intersection(depth)]
        while self._take("|"):
            parts.append(self._intersection(depth))
        return any_of(parts)

    def _intersection(self, depth: int) -> Expression:
        parts = [self._factor(depth)]
        while self._take("&"):
            parts.append(self._factor(depth))
        return all_of(parts)

    def _factor(self, depth: int) -> Expression:
        position, word = self.tokens[self.index]
        if depth > MAX_NESTING:
            raise ExpressionError(position, f"It is nested more than {MAX_NESTING} levels deep.")
        self.index += bool(word)
        if word == "~":
            return ~self._factor(depth + 1)
        if word == "(":
            inner = self._union(depth + 1)
            if not self._take(")"):
                raise ExpressionError(position, "This ( is not closed.")
            return inner
        if not word or word in "&|)":
            place = f"before {word}" if word else "at the end"
            raise ExpressionError(position, f"Something is missing {place}. {_EXAMPLES}")
        return _atom(position, word)


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    position = 0
    while match := _TOKEN.match(text, position):
        if other := match["other"]:
            raise ExpressionError(match.start("other"), f"{other!r} means nothing here. {_EXAMPLES}")
        if match["sign"] is None and match["word"] is None:
            break
        kind = "sign" if match["sign"] else "word"
        yield match.start(kind), match[kind]
        position = match.end()
    yield len(text), ""


_KINDS: dict[str, tuple[type[Tag | Effect | Safety | Domain], tuple[str, ...]]] = {
    "tag": (Tag, ()),
    "effect": (Effect, EFFECTS),
    "safety": (Safety, SAFETY_CLASSES),
    "domain": (Domain, DOMAINS),
}


def _atom(position: int, word: str) -> Expression:
    kind, colon, value = word.partition(":")
    if colon and kind not in _KINDS:
        raise ExpressionError(position, f"{kind}: is unknown. Use tag:, effect:, safety: or domain:.")
    try:
        if word == "*":
            return Everything()
        if colon:
            cls, known = _KINDS[kind]
            return cls(next((each for each in known if each.lower() == value.lower()), value))
        return Prefix(word.removesuffix(".*")) if word.endswith(".*") else Exact(word)
    except ValueError as error:
        raise ExpressionError(position, f"{error} {_EXAMPLES}") from error


def from_json(data: Any, *, depth: int = 0) -> Expression:
    """What ``to_json`` wrote. Raises ValueError for anything else."""
    if depth > 2 * MAX_NESTING:
        raise ValueError(f"It is nested more than {2 * MAX_NESTING} levels deep.")
    if isinstance(data, dict) and len(data) == 1:
        [(kind, value)] = data.items()
        if kind in ("all", "any") and isinstance(value, list) and value:
            return (all_of if kind == "all" else any_of)(from_json(part, depth=depth + 1) for part in value)
        if kind == "not":
            return ~from_json(value, depth=depth + 1)
        if kind == "any_tool" and value is True:
            return Everything()
        if kind in ("id", "prefix") and isinstance(value, str):
            return Exact(value) if kind == "id" else Prefix(value)
        if kind in _KINDS and isinstance(value, str):
            return _KINDS[kind][0](value)
    raise ValueError(f"{str(data)[:100]} is no part of an expression.")


# Ordering.


def specificity(expression: Expression) -> int:
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
            return max(map(specificity, expression.parts)) + min(len(expression.parts) - 1, 9)
        case Or():
            return min(map(specificity, expression.parts))
        case _:
            return 0

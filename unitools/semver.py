"""SemVer: which of two versions is newer, and the versions that a range means.

Versions are SemVer 2.0.0. Ranges are what npm and Cargo users write::

    *   1.4.2   1.x   1.4   ^1.2   ~1.2.3   >=1.2, <2   >=1.2 <2   1.x || 3.x

    >>> Version.parse("1.4.0") in Range.parse("^1.2")
    True
    >>> newest(["1.2.0", "1.10.0", "2.0.0-rc.1"], "*")
    '1.10.0'

A prerelease is only meant by an alternative that names a prerelease of the same ``major.minor.patch``: ``>=1.2.3-rc.1``
means 1.2.3-rc.2 and 1.2.4, not 1.2.4-rc.1, and ``*`` means releases only. Build metadata never counts: 1.0.0+a and 1.0.0+b
are equal, so a registry that has the one refuses the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import total_ordering
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TEXT = 256
MAX_RANGE = 1024

_NUMBER = r"(?:0|[1-9][0-9]*)"
_IDENTIFIER = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_TAIL = rf"(?:-(?P<pre>{_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+(?P<build>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
_VERSION = re.compile(rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER}){_TAIL}")
_PART = rf"(?:{_NUMBER}|[xX*])"
_COMPARATOR = re.compile(
    rf"(?P<op>\^|~|>=|<=|>|<|=|)\s*(?P<major>{_PART})(?:\.(?P<minor>{_PART})(?:\.(?P<patch>{_PART}){_TAIL})?)?(?=[\s,]|$)"
)
_BETWEEN = re.compile(r"\s*,\s*|\s+")
# A range as one pattern, for schemas: as it is usually written, with one space between its parts.
_DIGITS, _OPEN = "(0|[1-9][0-9]{0,8})", r"[xX*]"
_ONE = rf"(\^|~|>=|<=|>|<|=)?({_OPEN}(\.{_OPEN}){{0,2}}|{_DIGITS}(\.{_OPEN}){{0,2}}|{_DIGITS}\.{_DIGITS}(\.({_OPEN}|{_DIGITS}))?)"
RANGE_PATTERN = rf"^{_ONE}( {_ONE}){{0,4}}( \|\| {_ONE}( {_ONE}){{0,4}}){{0,4}}$"

Given = TypeVar("Given", str, "Version")
Key = tuple[int, int, int, int, tuple[tuple[int, int, str], ...]]


def _precedence(identifier: str) -> tuple[int, int, str]:
    """Numbers below words, numbers by value, words by their characters (SemVer 11.4)."""
    return (0, int(identifier), "") if identifier.isdigit() else (1, 0, identifier)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """One version. Two are equal when neither is newer, so build metadata does not tell them apart."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    key: Key = field(init=False, repr=False)

    def __post_init__(self) -> None:
        order = tuple(_precedence(each) for each in self.prerelease)
        object.__setattr__(self, "key", (*self.triple, 0 if self.prerelease else 1, order))

    @classmethod
    def parse(cls, text: str) -> Version:
        match = _VERSION.fullmatch(text) if len(text) <= MAX_TEXT else None
        if match is None:
            raise ValueError(
                f"{text[:80]!r} is not a version. Write three numbers without leading zeros, like 1.4.2; a prerelease as "
                "1.4.2-rc.1."
            )
        return cls._of(match)

    @classmethod
    def _of(cls, match: re.Match[str]) -> Version:
        return cls(
            int(match["major"]),
            int(match["minor"]),
            int(match["patch"]),
            tuple(match["pre"].split(".")) if match["pre"] else (),
            tuple(match["build"].split(".")) if match["build"] else (),
        )

    @property
    def triple(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: Version) -> bool:
        return self.key < other.key if isinstance(other, Version) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        text += "-" + ".".join(self.prerelease) if self.prerelease else ""
        return text + ("+" + ".".join(self.build) if self.build else "")


@dataclass(frozen=True, slots=True)
class _Span:
    """From ``low`` to before ``high`` (either may be open), with the prereleases of the triples that are named."""

    low: Version | None = None
    low_included: bool = True
    high: Version | None = None
    high_included: bool = False
    named: frozenset[tuple[int, int, int]] = frozenset()

    def holds(self, version: Version) -> bool:
        if self.low is not None and (version < self.low or (version == self.low and not self.low_included)):
            return False
        return self.high is None or version < self.high or (version == self.high and self.high_included)


_NOTHING = _Span(low=Version(0, 0, 0), low_included=False, high=Version(0, 0, 0))


def _span(match: re.Match[str]) -> _Span:
    """What one comparator means. ``1.x`` and ``1`` leave numbers open; a number after an open one has no meaning."""
    numbers: list[int] = []
    parts = [match["major"], match["minor"], match["patch"]]
    for part in parts:
        if part is None or not part.isdigit():
            break
        numbers.append(int(part))
    if any(part is not None and part.isdigit() for part in parts[len(numbers) :]):
        raise ValueError(f"In {match[0]!r} a number follows an open one. Write 1.x or 1.2.x.")
    if len(numbers) < 3:
        if match["pre"]:
            raise ValueError(f"In {match[0]!r} a prerelease follows an open number. Write all three numbers before it.")
        return _open_span(match["op"], numbers)
    version = Version(numbers[0], numbers[1], numbers[2], tuple(match["pre"].split(".")) if match["pre"] else ())
    named = frozenset([version.triple]) if version.prerelease else frozenset()
    match match["op"]:
        case "^":
            fixed = next((place for place, number in enumerate(numbers) if number), 2)
            return _Span(version, True, _above(numbers[: fixed + 1]), False, named)
        case "~":
            return _Span(version, True, _above(numbers[:2]), False, named)
        case ">" | ">=" as op:
            return _Span(low=version, low_included=op == ">=", named=named)
        case "<" | "<=" as op:
            return _Span(high=version, high_included=op == "<=", named=named)
        case _:
            return _Span(version, True, version, True, named)


def _open_span(op: str, numbers: list[int]) -> _Span:
    """``1.x`` is all of 1; ``>1.x`` is above all of it, ``>=1.x`` from its beginning."""
    if not numbers:
        return _NOTHING if op in ("<", ">") else _Span()
    triple = numbers[0], numbers[1] if len(numbers) > 1 else 0, 0
    low, above = Version(*triple), _above(numbers)
    match op:
        case ">":
            return _Span(low=_above(numbers, ()))
        case ">=":
            return _Span(low=low)
        case "<":
            return _Span(high=Version(*triple, ("0",)))
        case "<=":
            return _Span(high=above)
        case "^" if numbers[0]:
            return _Span(low=low, high=_above(numbers[:1]))
        case _:
            return _Span(low=low, high=above)


def _above(numbers: list[int], prerelease: tuple[str, ...] = ("0",)) -> Version:
    """Where the versions begin in which the last of these numbers is larger: with their lowest prerelease."""
    raised = [*numbers[:-1], numbers[-1] + 1, 0, 0]
    return Version(raised[0], raised[1], raised[2], prerelease)


@dataclass(frozen=True, slots=True)
class Range:
    """A set of versions: alternatives (``||``), each of comparators that must all hold."""

    text: str
    alternatives: tuple[tuple[_Span, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Range:
        if not text.strip() or len(text) > MAX_RANGE:
            raise ValueError("A range is not empty and not over 1,024 characters. Write * for every release.")
        return cls(text.strip(), tuple(cls._alternative(part) for part in text.split("||")))

    @staticmethod
    def _alternative(text: str) -> tuple[_Span, ...]:
        rest, spans, position = text.strip(), [], 0
        while True:
            match = _COMPARATOR.match(rest, position)
            if match is None:
                raise ValueError(
                    f"{text.strip()[:80]!r} is not a range: {rest[position : position + 40]!r} has no meaning in it. Write for "
                    "example ^1.2, ~1.2.3, 1.x, >=1.2 <2 or 1.x || 3.x."
                )
            spans.append(_span(match))
            between = _BETWEEN.match(rest, match.end())
            if between is None:
                return tuple(spans)
            position = between.end()

    def __contains__(self, version: object) -> bool:
        if isinstance(version, str):
            version = Version.parse(version)
        if not isinstance(version, Version):
            return False
        return any(
            (not version.prerelease or any(version.triple in span.named for span in spans))
            and all(span.holds(version) for span in spans)
            for spans in self.alternatives
        )

    def __str__(self) -> str:
        return self.text


def find_newest(versions: Iterable[Given], within: Range | str = "*") -> Given | None:
    """The newest of the versions that the range means, as it was given; None when it means none of them."""
    wanted = Range.parse(within) if isinstance(within, str) else within
    return max((each for each in versions if each in wanted), key=_parsed, default=None)


def find_predecessor(versions: Iterable[Given], version: str | Version) -> Given | None:
    """What a new version is to be compared with: the newest older release, or the newest older prerelease if there is none.

    1.2.4 that is made after 2.0.0 is compared with 1.2.3, and 1.3.0 with 1.2.9 even when 1.3.0-rc.1 was registered.
    """
    older = [each for each in versions if _parsed(each) < _parsed(version)]
    return max(older, key=lambda each: (not _parsed(each).prerelease, _parsed(each)), default=None)


def _parsed(version: str | Version) -> Version:
    return Version.parse(version) if isinstance(version, str) else version

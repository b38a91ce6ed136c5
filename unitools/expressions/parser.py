"""Parser: the expression that a text, or a JSON document, writes.

Whatever it is, it is an expression or it is refused with the place and a sentence; length and nesting are bounded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from unitools.expressions import name_atoms
from unitools.expressions.values import (
    DOMAINS,
    EFFECTS,
    SAFETY_CLASSES,
    Domain,
    Effect,
    Everything,
    Exact,
    Expression,
    Prefix,
    Safety,
    Tag,
    all_of,
    any_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LENGTH = 500
MAX_NESTING = 16

_TOKEN = re.compile(r"\s*(?:(?P<sign>[&|~()])|(?P<word>[A-Za-z0-9_.:*-]+)|(?P<end>$)|(?P<other>.))", re.DOTALL)
_NAMES_ARE_ELSEWHERE = "name: means tools of a Universe. Here tools are named by their ids."
_EXAMPLES = "Write *, an id such as shop.prices.get_quote, a prefix such as shop.*, tag:x, effect:Read, safety:Low or domain:net."


class ExpressionError(ValueError):
    """The text is no expression. ``position`` counts characters from 0."""

    def __init__(self, position: int, sentence: str) -> None:
        self.position = position
        self.sentence = sentence
        super().__init__(f"At character {position + 1}: {sentence}")


def parse(text: str, *, names: bool = False) -> Expression:
    """The expression that a text writes. Raises :class:`ExpressionError`, a ValueError with position and sentence.

    ``names``: also ``name:quote.get`` and ``name:Bank__*``, which mean tools of a Universe. A hub refuses them.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(MAX_LENGTH, f"An expression has at most {MAX_LENGTH} characters.")
    return _ExpressionReader(text, names=names).read()


@lru_cache(maxsize=10_000)
def parse_cached(text: str) -> Expression:
    """As :func:`parse`, remembered: for expressions that are stored and asked on every call."""
    return parse(text)


class _ExpressionReader:
    def __init__(self, text: str, *, names: bool) -> None:
        self.names = names
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
        return _atom(position, word, names=self.names)


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


def _atom(position: int, word: str, *, names: bool) -> Expression:
    kind, colon, value = word.partition(":")
    if kind == "name" and colon and not names:
        raise ExpressionError(position, f"{_NAMES_ARE_ELSEWHERE} {_EXAMPLES}")
    if colon and kind not in (*_KINDS, "name"):
        raise ExpressionError(position, f"{kind}: is unknown. Use tag:, effect:, safety: or domain:.")
    try:
        if kind == "name" and colon:
            return name_atoms.Prefix(value.removesuffix("*")) if value.endswith("*") else name_atoms.Name(value)
        if word == "*":
            return Everything()
        if colon:
            cls, known = _KINDS[kind]
            return cls(next((each for each in known if each.lower() == value.lower()), value))
        return Prefix(word.removesuffix(".*")) if word.endswith(".*") else Exact(word)
    except ValueError as error:
        raise ExpressionError(position, f"{error} {_EXAMPLES}") from error


def from_json(data: Any, *, names: bool = False, depth: int = 0) -> Expression:
    """What ``to_json`` wrote; ``names`` as in :func:`parse`. Raises ValueError for anything else."""
    if depth > 2 * MAX_NESTING:
        raise ValueError(f"It is nested more than {2 * MAX_NESTING} levels deep.")
    if isinstance(data, dict) and len(data) == 1:
        [(kind, value)] = data.items()
        if kind in ("all", "any") and isinstance(value, list) and value:
            return (all_of if kind == "all" else any_of)(
                from_json(part, names=names, depth=depth + 1) for part in value
            )
        if kind == "not":
            return ~from_json(value, names=names, depth=depth + 1)
        if kind == "any_tool" and value is True:
            return Everything()
        if kind in ("id", "prefix") and isinstance(value, str):
            return Exact(value) if kind == "id" else Prefix(value)
        if kind in _KINDS and isinstance(value, str):
            return _KINDS[kind][0](value)
        if kind in ("name", "name_prefix") and isinstance(value, str):
            if not names:
                raise ValueError(_NAMES_ARE_ELSEWHERE)
            return name_atoms.Name(value) if kind == "name" else name_atoms.Prefix(value)
    raise ValueError(f"{str(data)[:100]} is no part of an expression.")

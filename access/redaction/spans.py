"""Spans: where a candidate ends, and what stands before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

Span = tuple[int, int]
SEPARATORS = " -.()"


def iter_prefixes(match: re.Match[str], text: str, least: int) -> Iterator[tuple[Span, str]]:
    """A candidate and, shorter and shorter, what remains of it when whole groups are left off at its end."""
    start, end = match.span()
    while end > start:
        compact = "".join(char for char in text[start:end] if char not in SEPARATORS)
        if len(compact) < least:
            return
        yield (start, end), compact
        end -= 1
        while end > start and text[end - 1] not in SEPARATORS:
            end -= 1
        while end > start and text[end - 1] in SEPARATORS:
            end -= 1


def has_word_before(text: str, start: int, words: re.Pattern[str], reach: int) -> bool:
    """Whether one of the words stands shortly before."""
    return words.search(text, max(0, start - reach), start) is not None

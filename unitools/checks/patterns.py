"""Patterns: whether a regular expression is one that a call can be held against quickly.

The validator that runs on calls uses a linear engine, so no pattern explodes. But linear means length of the text times size of
the pattern, and a counted repetition is as large as what it repeats, times its count.
"""

from __future__ import annotations

import re
from functools import lru_cache

import jsonschema_rs

MAX_LENGTH = 1000
MAX_SIZE = 500  # of one pattern: a second on 256 KiB
MAX_TOTAL = 3000  # of all patterns of one schema

_COUNT = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_ESCAPE = re.compile(r"\\(?:[pPuxk]\{[^}]*\}|[pP][A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_OPEN = re.compile(r"\((?:\?(?:[:=!>]|<[=!]|P?<[^>]*>|[a-zA-Z-]*[:)]))?")
_CEILING = 10**9


def measure_pattern(pattern: str) -> int:
    """About how many characters the pattern would have with its counted repetitions written out."""
    sizes = [0]  # of the groups around this place
    last = 0  # of what a repetition would repeat
    position = 0
    while position < len(pattern):
        sign = pattern[position]
        if sign == "\\" and (match := _ESCAPE.match(pattern, position)):
            sizes[-1] += (last := 1)
            position = match.end()
        elif sign == "[":
            sizes[-1] += (last := 1)
            position = _end_of_class(pattern, position)
        elif sign == "(" and (match := _OPEN.match(pattern, position)):
            position = match.end()
            if not match[0].endswith(")") or match[0] == "(":
                sizes.append(0)
        elif sign == ")" and len(sizes) > 1:
            last = max(sizes.pop(), 1)
            sizes[-1] += last
            position += 1
        elif sign == "{" and (match := _COUNT.match(pattern, position)) and (match[1] or match[2]):
            times = max(int((match[1] or "0")[:10]), int((match[2] or "0")[:10]), 1)
            grown = min(last * times, _CEILING)
            sizes[-1] += grown - last
            last = grown
            position = match.end()
        else:
            if sign not in "*+?|^$":
                sizes[-1] += (last := 1)
            position += 1
    return min(sum(sizes), _CEILING)


def _end_of_class(pattern: str, start: int) -> int:
    position = start + 1
    if pattern[position : position + 1] == "^":
        position += 1
    if pattern[position : position + 1] == "]":
        position += 1
    while position < len(pattern):
        if pattern[position] == "]":
            return position + 1
        position += 2 if pattern[position] == "\\" else 1
    return position


@lru_cache(maxsize=1000)
def find_refusal_reason(pattern: str) -> str:
    """A sentence about a pattern that calls cannot be held against; empty for one that they can."""
    if len(pattern) > MAX_LENGTH:
        return f"The pattern has {len(pattern):,} characters; at most {MAX_LENGTH:,} are read."
    if (size := measure_pattern(pattern)) > MAX_SIZE:
        return f"With its repetitions written out the pattern has about {size:,} characters; at most {MAX_SIZE:,} are."
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError:
        return f"The pattern {pattern[:80]!r} cannot be compiled: look-around and back-references are not in linear engines."
    return ""

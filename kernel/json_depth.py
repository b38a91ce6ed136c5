"""JSON depth: how deeply a JSON text is nested, before anything parses it.

Linear in its length and without recursion, so that a hostile text cannot overflow the stack of the parser behind it.
"""

from __future__ import annotations

import re

# A string, or what is left of one at the end of the text. Possessive: there is nothing to go back to.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def measure_depth(raw: bytes) -> int:
    """Deepest nesting of brackets outside strings."""
    depth = deepest = 0
    for bracket in _STRINGS.sub(b"", raw).translate(None, _NOT_BRACKETS):
        if bracket in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest

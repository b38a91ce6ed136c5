"""Prefer header (RFC 7240): how long a caller wants to wait, and what for.

``Prefer: respond-async`` wants the address of the call at once, ``wait=10`` an answer within ten seconds, and both together the
answer if it is there by then, else the address. What cannot be read is passed over, as the standard says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PREFERENCE = re.compile(rf"\s*(?P<name>{_WORD})\s*(?:=\s*(?P<value>{_WORD}|{_QUOTED}))?[^,]*(?:,|$)")
MAX_WAIT_S = 3600


@dataclass(frozen=True, slots=True)
class Preferences:
    """``wait_s``: at most so long; None when nothing was said about it."""

    respond_async: bool = False
    wait_s: int | None = None


def parse_prefer_header(header: str) -> Preferences:
    """What the header ``Prefer`` says; of each preference the first counts."""
    said: dict[str, str] = {}
    for found in _PREFERENCE.finditer(header[:1000]):
        said.setdefault(found["name"].lower(), (found["value"] or "").strip('"'))
    wait = said.get("wait", "")
    wait_s = min(int(wait), MAX_WAIT_S) if wait.isascii() and wait.isdigit() and len(wait) < 9 else None
    return Preferences(respond_async="respond-async" in said, wait_s=wait_s)

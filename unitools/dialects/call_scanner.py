"""Call scanner: where in a model's text the calls are that were written for this rendering.

A call is ``<tool_call id="…" nonce="…">{"name": …, "arguments": {…}}</tool_call>``. Its inside is JSON, not XML: ``<``, ``&`` and
even ``</tool_call>`` stand in strings as they are. A tag without a nonce that was made with the key is text, such as one that the
model quotes from a document. Attributes stand in double quotes, which strings of JSON cannot hold as they are: so no tag is found
inside the arguments of another call, and each region up to the next tag is read by itself. That makes the work linear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unitools.dialects.model_json import scan_brackets
from unitools.dialects.nonces import check_nonce

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVENT = re.compile(
    r'<tool_call(?P<attributes>(?:\s++[A-Za-z_]++="[^"<>\n]*+")*+)\s*+>'
    r"|^[ ]{0,3}(?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+)(?P<after>[^\n]*+)$",
    re.MULTILINE,
)
_ATTRIBUTE = re.compile(r'([A-Za-z_]++)="([^"<>\n]*+)"')
_CLOSE = re.compile(r"\s*+</tool_call\s*+>")
_CLOSES = re.compile(r"</tool_call\s*+>")


@dataclass(frozen=True, slots=True)
class ScannedCall:
    """One call that the text holds."""

    id: str
    payload: str  # meant to be JSON
    closed: bool  # the closing tag is there
    fenced: bool  # it stands inside a code fence, as examples do


def scan_calls(text: str, key: bytes) -> list[ScannedCall]:
    """The calls with a nonce of this key, in order."""
    events = [
        event for event in _EVENT.finditer(text) if event["fence"] or check_nonce(key, _attribute(event, "nonce"))
    ]
    ends = [*[event.start() for event in events if not event["fence"]][1:], len(text)]
    return list(_calls(text, events, iter(ends)))


def _attribute(event: re.Match[str], name: str) -> str:
    attributes: list[tuple[str, str]] = _ATTRIBUTE.findall(event["attributes"])
    return dict(attributes).get(name, "")


def _calls(text: str, events: list[re.Match[str]], ends: Iterator[int]) -> Iterator[ScannedCall]:
    fence, read_to = "", 0
    for event in events:
        if event["fence"]:
            if event.start() >= read_to:
                fence = _fence(fence, event)
            continue
        payload, closed, read_to = _payload(text, event.end(), next(ends))
        yield ScannedCall(_attribute(event, "id"), payload, closed, bool(fence))


def _fence(fence: str, event: re.Match[str]) -> str:
    """The fence that is open after this line; a fence is closed by one as long, of the same kind, with nothing behind."""
    if not fence:
        return event["fence"]
    closes = event["fence"].startswith(fence) and not event["after"].strip()
    return "" if closes else fence


def _payload(text: str, start: int, end: int) -> tuple[str, bool, int]:
    """What stands between the tags, whether it is closed, and where it ends.

    JSON says itself where it ends. What is no JSON goes to the last closing tag before the next call.
    """
    region = text[start:end]
    length = scan_brackets(region).end
    if length and (close := _CLOSE.match(region, length)):
        return region[:length], True, start + close.end()
    closes = list(_CLOSES.finditer(region))
    if not closes:
        return region, False, end
    return region[: closes[-1].start()], True, start + closes[-1].end()

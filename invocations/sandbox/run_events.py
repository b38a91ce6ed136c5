"""Run events: what a tool says while it runs.

Its output comes in pieces of bytes that may end anywhere; its progress in lines, each a JSON object. All of it is the
tool's word: text is made of any bytes, and progress of another shape is dropped.
"""

from __future__ import annotations

import codecs
import logging
from typing import TYPE_CHECKING, Any

from invocations.sandbox.base import RunEvent
from invocations.sandbox.results import NotStrictJson, parse_strict
from sandbox import run_monitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = logging.getLogger(__name__)
_MAX_LINE_BYTES = 4096
_MAX_MESSAGE_CHARS = 500


class EventRelay:
    """Makes events of what a box says of one call."""

    def __init__(self, on_event: Callable[[RunEvent], None]) -> None:
        self._on_event: Callable[[RunEvent], None] | None = on_event
        self._decoders = {
            name: codecs.getincrementaldecoder("utf-8")("replace") for name in (run_monitor.STDOUT, run_monitor.STDERR)
        }
        self._line = b""

    def __call__(self, stream: str, data: bytes) -> None:
        for event in self._events(stream, data):
            if self._on_event is not None:
                try:
                    self._on_event(event)
                except Exception:
                    log.exception("What a tool says is not passed on any more")
                    self._on_event = None

    def _events(self, stream: str, data: bytes) -> Iterator[RunEvent]:
        if stream == run_monitor.PROGRESS:
            *lines, rest = (self._line + data).split(b"\n")
            self._line = rest[: _MAX_LINE_BYTES + 1]  # one that is too long stays so
            for line in lines:
                said = parse_progress(line)
                if said is not None:
                    yield RunEvent(stream, progress=said)
        elif stream in self._decoders:
            text = self._decoders[stream].decode(data).replace("\0", "\N{REPLACEMENT CHARACTER}")
            if text:
                yield RunEvent(stream, text)


def parse_progress(line: bytes) -> dict[str, Any] | None:
    """``{"fraction": …, "message": …}``, each may be missing, or ``{"log": …}``; None for anything else."""
    try:
        said = parse_strict(line, max_bytes=_MAX_LINE_BYTES, max_depth=2)
    except NotStrictJson:
        return None
    if not isinstance(said, dict) or not said:
        return None
    if set(said) == {"log"}:
        return {"log": said["log"][:_MAX_MESSAGE_CHARS]} if isinstance(said["log"], str) else None
    if not set(said) <= {"fraction", "message"}:
        return None
    fraction, message = said.get("fraction", 0), said.get("message", "")
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
        return None
    if not isinstance(message, str):
        return None
    return said | ({"message": message[:_MAX_MESSAGE_CHARS]} if message else {})

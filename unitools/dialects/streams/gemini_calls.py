"""Calls of Gemini whose arguments come in pieces: each piece names its place (a JSONPath) and says whether the value goes on.

``{"name": …, "willContinue": true}``, then ``{"partialArgs": [{"jsonPath": "$.a.b[0]", "stringValue": "…", "willContinue": true}]}``
and more of these, at last one that does not go on. What is not closed, or stands at a place that cannot be, stays marked as going on,
so that its reader takes it for cut.
"""

from __future__ import annotations

import re
from typing import Any

from unitools.dialects.model_json import MAX_DEPTH
from unitools.dialects.streams.base import Chunk, CollectedText, get_chunks, get_word, leave_out

_STEP = re.compile(r"\.([A-Za-z_$][\w$-]*)|\[(\d{1,6})\]|\['([^'\\]*)'\]|\[\"([^\"\\]*)\"\]")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_ALSO = {"jsonPath": "json_path", "willContinue": "will_continue", "partialArgs": "partial_args"} | {
    "stringValue": "string_value",
    "numberValue": "number_value",
    "boolValue": "bool_value",
    "nullValue": "null_value",
}  # by the REST API's name, and by the Python SDK's


def _get(chunk: Chunk, name: str) -> Any:
    return chunk.get(name, chunk.get(_ALSO[name]))


def goes_on(call: Chunk) -> bool:
    return _get(call, "willContinue") is True


def is_partial(call: Chunk) -> bool:
    return goes_on(call) or _get(call, "partialArgs") is not None


class PartialCall:
    """One call; its pieces follow each other."""

    def __init__(self) -> None:
        self._head: Chunk = {}
        self._args: dict[str, Any] = {}
        self._text: CollectedText | None = None  # of the value that goes on
        self._place: list[str | int] = []
        self.is_open, self._is_broken = True, False

    def add(self, call: Chunk) -> None:
        """Raises ResponseTooLarge."""
        said = leave_out(call, "partialArgs", "partial_args", "willContinue", "will_continue")
        self._head |= {name: value for name, value in said.items() if value not in (None, "", {})}
        pieces = "partialArgs" if "partialArgs" in call else "partial_args"
        for piece in get_chunks(call, pieces):
            self._add_value(piece)
        self.is_open = goes_on(call)

    def _add_value(self, piece: Chunk) -> None:
        path = get_word(piece, "jsonPath") or get_word(piece, "json_path")
        place = _parse_path(path)
        kind = next((each for each in _VALUES if each in piece or _ALSO[each] in piece), "")
        if not place or not kind:
            self._is_broken = True
            return
        value: Any = None if kind == "nullValue" else _get(piece, kind)
        if kind == "stringValue":
            if self._text is None or place != self._place:
                self._is_broken = self._is_broken or self._text is not None  # another one has not ended
                self._text, self._place = CollectedText(), place
            self._text.add(value)
            value = str(self._text)
        elif self._text is not None:
            self._is_broken = True
        if not goes_on(piece):
            self._is_broken = self._is_broken or not _put(self._args, place, value)
            self._text = None

    def build(self) -> Chunk:
        call = {"args": self._args, **self._head}
        unfinished = self.is_open or self._is_broken or self._text is not None
        return {**call, "willContinue": True} if unfinished else call


def _parse_path(path: str) -> list[str | int]:
    """The steps from the root; empty for a path that is not understood."""
    steps: list[str | int] = []
    at = 1
    while path.startswith("$") and at < len(path) and (step := _STEP.match(path, at)) and len(steps) < MAX_DEPTH:
        name = next((each for each in (step[1], step[3], step[4]) if each is not None), "")
        steps.append(name if step[2] is None else int(step[2]))
        at = step.end()
    return steps if at == len(path) else []


def _put(root: dict[str, Any], place: list[str | int], value: Any) -> bool:
    """Whether the value could be put there: once, and in a list behind what it holds."""
    held: Any = root
    for step, following in zip(place, [*place[1:], None], strict=True):
        fits = isinstance(held, list) if isinstance(step, int) else isinstance(held, dict)
        if not fits:
            return False
        is_there = step < len(held) if isinstance(step, int) else step in held
        if following is None and is_there:
            return False
        if not is_there:
            fresh = value if following is None else [] if isinstance(following, int) else {}
            if isinstance(step, str):
                held[step] = fresh
            elif step == len(held):
                held.append(fresh)
            else:
                return False
        held = held[step]
    return True

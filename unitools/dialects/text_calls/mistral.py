"""Mistral: ``[TOOL_CALLS][{"name": …, "arguments": {…}}]``, and since 2025 ``[TOOL_CALLS]name[ARGS]{…}`` for each call."""

from __future__ import annotations

import re

from unitools.dialects.arguments import read_text
from unitools.dialects.model_json import find_bracket_end
from unitools.dialects.parsers.proposals import MOST
from unitools.dialects.text_calls.base import SHAPE, TextCall, build_object_call
from unitools.strict_json import JsonRefused

TAG = "[TOOL_CALLS]"
_NAMED = re.compile(r"\s*+([\w.:-]{1,256})\s*+(?:\[CALL_ID\]\s*+(\w{1,64})\s*+)?\[ARGS\]\s*+")
_SPACE = re.compile(r"\s*+")


def looks_alike(text: str) -> bool:
    return TAG in text


def scan(text: str) -> list[TextCall]:
    """What is not closed is the last: all that follows belongs to it."""
    calls: list[TextCall] = []
    at = 0
    while len(calls) <= MOST and (start := text.find(TAG, at)) >= 0:
        begin = start + len(TAG)
        named = _NAMED.match(text, begin)
        space = _SPACE.match(text, begin)
        opens = named.end() if named else space.end() if space else begin
        if not text.startswith("{" if named else "[", opens):
            return [*calls, TextCall(start, len(text), closed=False)]
        end = find_bracket_end(text, opens)
        if not end:
            return [*calls, TextCall(start, len(text), closed=False)]
        if named:
            calls.append(TextCall(start, end, named[1], text[opens:end], id=named[2] or ""))
        else:
            calls += _listed(text, start, opens, end)
        at = end
    return calls


def _listed(text: str, start: int, opens: int, end: int) -> list[TextCall]:
    try:
        value, _ = read_text(text[opens:end])
    except JsonRefused as refusal:
        return [TextCall(start, end, why=f"The calls cannot be read: {refusal}")]
    if not isinstance(value, list):
        return [TextCall(start, end, why=SHAPE)]
    return [build_object_call(each, start, end) for each in value]


def frame_result(said: str) -> str:
    return f"[TOOL_RESULTS]{said}[/TOOL_RESULTS]"

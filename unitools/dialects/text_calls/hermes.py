"""Hermes, and Qwen after it: ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``.

Qwen's coders write ``<function=name><parameter=key>text</parameter></function>`` between the tags. That text is not escaped, so a
value that holds a closing tag and another parameter cannot be told from two; where a parameter is there twice, nothing is run.
"""

from __future__ import annotations

import re

from unitools.dialects.model_json import find_bracket_end
from unitools.dialects.parsers.proposals import MOST
from unitools.dialects.text_calls.base import SHAPE, TWICE, TextCall, read_object

_OPEN = re.compile(r"<tool_call>\s*+")
_CLOSE = re.compile(r"\s*+</tool_call>")
_FUNCTION = re.compile(r"<function=([^<>\n]{1,256})>\s*+")
_PARAMETER = re.compile(r"<parameter=([^<>\n]{1,256})>\n?")
_VALUE_END = re.compile(r"\n?</parameter>\s*+(?=<parameter=|</function>)")
_FUNCTION_END = re.compile(r"\s*+</function>")
_LOOKS = re.compile(r"<tool_call>\s*+(?:\{|<function=)|<function=[^<>\n]{1,256}>\s*+(?:<parameter=|</function>)")


def looks_alike(text: str) -> bool:
    return _LOOKS.search(text) is not None


def scan(text: str) -> list[TextCall]:
    """What is not closed is the last: all that follows belongs to it."""
    calls: list[TextCall] = []
    at = 0
    while len(calls) <= MOST and (opened := _OPEN.search(text, at)):
        begin = opened.end()
        call = _function(text, begin) if text.startswith("<function=", begin) else _object(text, begin)
        closing = _CLOSE.match(text, call.end) if call.closed else None
        end = closing.end() if closing else len(text)
        calls.append(_framed(call, opened.start(), end, closed=closing is not None))
        at = end
    return calls


def _framed(call: TextCall, start: int, end: int, *, closed: bool) -> TextCall:
    return TextCall(start, end, call.name, call.arguments, call.raw, call.id, closed, call.why)


def _object(text: str, start: int) -> TextCall:
    if not text.startswith("{", start):
        closing = text.find("</tool_call>", start)
        return TextCall(start, max(closing, start), closed=closing >= 0, why=SHAPE)
    end = find_bracket_end(text, start)
    return read_object(text, start, end) if end else TextCall(start, len(text), closed=False)


def _function(text: str, start: int) -> TextCall:
    opened = _FUNCTION.match(text, start)
    if opened is None:
        return TextCall(start, len(text), closed=False)
    found: dict[str, str] = {}
    at, why = opened.end(), ""
    while parameter := _PARAMETER.match(text, at):
        value = _VALUE_END.search(text, parameter.end())
        if value is None:
            return TextCall(start, len(text), opened[1], closed=False)
        name = parameter[1].strip()
        why = TWICE if name in found else why
        found[name] = text[parameter.end() : value.start()]
        at = value.end()
    closing = _FUNCTION_END.match(text, at)
    return TextCall(
        start,
        closing.end() if closing else len(text),
        opened[1].strip(),
        raw=found,
        closed=closing is not None,
        why=why,
    )


def frame_result(said: str) -> str:
    return f"<tool_response>\n{said}\n</tool_response>"

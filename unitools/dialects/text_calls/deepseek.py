"""DeepSeek: V3 fences the arguments, V3.1 writes them bare, V3.2 has tags of its own (DSML) for each parameter.

::

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>name⏎```json⏎{…}⏎```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
    <｜DSML｜function_calls><｜DSML｜invoke name="…"><｜DSML｜parameter name="…" string="true">text</｜DSML｜parameter>…
"""

from __future__ import annotations

import re

from unitools.dialects.arguments import read_text
from unitools.dialects.model_json import find_bracket_end
from unitools.dialects.parsers.proposals import MOST
from unitools.dialects.text_calls.base import SHAPE, TWICE, TextCall
from unitools.strict_json import JsonRefused

CALLS = "<｜tool▁calls▁begin｜>"
CALLS_END = "<｜tool▁calls▁end｜>"
DSML = "<｜DSML｜function_calls>"
DSML_END = "</｜DSML｜function_calls>"
_FRAME = re.compile(f"{CALLS}|{DSML}")
_HEAD = re.compile(
    r"\s*+<｜tool▁call▁begin｜>\s*+"
    r"(?:(function)\s*+<｜tool▁sep｜>\s*+([^<>\n]{1,256}?)[ \t]*+\n```json\s*+"
    r"|([^<>\n]{1,256}?)\s*+<｜tool▁sep｜>\s*+)"
)
_TAIL = re.compile(r"\s*+(?:```)?\s*+<｜tool▁call▁end｜>")
_INVOKE = re.compile(r'\s*+<｜DSML｜invoke name="([^"<>\n]{1,256})">')
_INVOKE_END = re.compile(r"\s*+</｜DSML｜invoke>")
_PARAMETER = re.compile(r'\s*+<｜DSML｜parameter name="([^"<>\n]{1,256})"(?: string="(true|false)")?>')
_PARAMETER_END = "</｜DSML｜parameter>"


def looks_alike(text: str) -> bool:
    return CALLS in text or DSML in text


def scan(text: str) -> list[TextCall]:
    """Nothing is closed where the frame around all of them is not."""
    calls: list[TextCall] = []
    at = 0
    while len(calls) <= MOST and (opened := _FRAME.search(text, at)):
        start = opened.start()
        found, at, closed = _framed(text, start, opened.end(), dsml=opened[0] == DSML)
        end = at if closed else len(text)
        calls += [
            TextCall(start, end, each.name, each.arguments, id="", closed=closed and each.closed, why=each.why)
            for each in found
        ]
        if not closed:
            break
    return calls


def _framed(text: str, start: int, at: int, *, dsml: bool) -> tuple[list[TextCall], int, bool]:
    """The calls of one frame, where it ends, and whether it does. An empty one counts as a call that is none: a text may be full of
    them."""
    calls: list[TextCall] = []
    end = DSML_END if dsml else CALLS_END
    while head := (_INVOKE if dsml else _HEAD).match(text, at):
        call = _invoked(text, head) if dsml else _bare(text, head)
        calls.append(call)
        if not call.closed:
            return calls, len(text), False
        at = call.end
    closing = re.compile(rf"\s*+{re.escape(end)}").match(text, at)
    if closing:
        return calls or [TextCall(start, closing.end(), why=SHAPE)], closing.end(), True
    return [*calls, TextCall(start, len(text), closed=False, why=SHAPE)], len(text), False


def _bare(text: str, head: re.Match[str]) -> TextCall:
    name, begin = (head[2] or head[3] or "").strip(), head.end()
    end = find_bracket_end(text, begin) if text.startswith("{", begin) else 0
    tail = _TAIL.match(text, end) if end else None
    if tail is None:
        return TextCall(head.start(), len(text), name, closed=False)
    return TextCall(head.start(), tail.end(), name, text[begin:end])


def _invoked(text: str, head: re.Match[str]) -> TextCall:
    found: dict[str, object] = {}
    at, why = head.end(), ""
    while parameter := _PARAMETER.match(text, at):
        end = text.find(_PARAMETER_END, parameter.end())
        if end < 0:
            return TextCall(head.start(), len(text), head[1], closed=False)
        name, said = parameter[1], text[parameter.end() : end]
        why = TWICE if name in found else why
        found[name], wrong = (said, "") if parameter[2] != "false" else _read(said)
        why = why or wrong
        at = end + len(_PARAMETER_END)
    closing = _INVOKE_END.match(text, at)
    return TextCall(
        head.start(), closing.end() if closing else len(text), head[1], found, closed=closing is not None, why=why
    )


def _read(said: str) -> tuple[object, str]:
    try:
        return read_text(said)[0], ""
    except JsonRefused as refusal:
        return None, f"A parameter cannot be read: {refusal}"


def frame_result(said: str) -> str:
    return f"<｜tool▁output▁begin｜>{said}<｜tool▁output▁end｜>"

"""Llama: the whole answer is ``{"name": …, "parameters": {…}}``, often behind ``<|python_tag|>``; or a list of calls as Python writes
them, ``[get_quote(symbol="ACME")]``, of which literals only are read and nothing is ever evaluated."""

from __future__ import annotations

import ast
import re
from typing import Any

from unitools.dialects.model_json import find_bracket_end
from unitools.dialects.parsers.proposals import MOST
from unitools.dialects.text_calls.base import SHAPE, TWICE, TextCall, read_object

TAG = "<|python_tag|>"
_BEGIN = re.compile(r"\s*+(?:<\|python_tag\|>|<\|python_start\|>)?\s*+")
_BETWEEN = re.compile(r"[\s;,]*+")
_OBJECT = re.compile(r'\{\s*+"(?:name|type|parameters|function)"\s*+:')
_ARGUMENTS = re.compile(r'"(?:parameters|arguments)"\s*+:')
_PYTHONIC = re.compile(r"\[\s*+[A-Za-z_][\w.]*+\(")
_PYTHON_END = re.compile(r"\s*+(?:<\|python_end\|>)?")
_NAMES = {"true": True, "false": False, "null": None}
_MOST = 64 * 1024  # characters that Python's own reader is given
_NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError, SystemError)  # what it says of those that are none


def looks_alike(text: str) -> bool:
    start = _start(text)
    pythonic = _PYTHONIC.match(text, start)
    return TAG in text or (_OBJECT.match(text, start) is not None and '"parameters"' in text) or pythonic is not None


def _start(text: str) -> int:
    """Behind the tag, wherever it stands; without one the answer itself begins there."""
    tag = text.rfind(TAG)
    begun = _BEGIN.match(text, max(tag, 0))
    return begun.end() if begun else 0


def scan(text: str) -> list[TextCall]:
    at = _start(text)
    if _PYTHONIC.match(text, at):
        return _pythonic(text, at)
    tagged = TAG in text
    calls: list[TextCall] = []
    while len(calls) <= MOST and text.startswith("{", at) and (tagged or _OBJECT.match(text, at)):
        end = find_bracket_end(text, at)
        if not end:
            return [*calls, TextCall(at, len(text), closed=False)]
        call = read_object(text, at, end)
        if not tagged and (call.why or not _ARGUMENTS.search(text, at, end)):
            return []  # JSON, and no call
        calls.append(call)
        between = _BETWEEN.match(text, end)
        at = between.end() if between else end
    if tagged and not calls:
        return [TextCall(at, len(text), why=SHAPE)]
    return calls


def _pythonic(text: str, start: int) -> list[TextCall]:
    end = text.rfind("]") + 1
    if end <= start:
        return [TextCall(start, len(text), closed=False)]
    ended = _PYTHON_END.match(text, end)
    behind = ended.end() if ended else end
    if end - start > _MOST:
        return [TextCall(start, behind, why=SHAPE)]
    try:
        listed = ast.parse(text[start:end], mode="eval").body
    except _NO_PYTHON:
        return [TextCall(start, behind, why=SHAPE)]
    if not isinstance(listed, ast.List) or not listed.elts:
        return [TextCall(start, behind, why=SHAPE)]
    return [_call(each, start, behind) for each in listed.elts]


def _call(node: ast.expr, start: int, end: int) -> TextCall:
    """All calls of a list end where it does, so none of them stands amid text but with the others."""
    if not isinstance(node, ast.Call) or node.args or any(each.arg is None for each in node.keywords):
        return TextCall(start, end, why=SHAPE)
    if len({each.arg for each in node.keywords}) < len(node.keywords):
        return TextCall(start, end, why=TWICE)
    try:
        given = {str(each.arg): _literal(each.value) for each in node.keywords}
        return TextCall(start, end, ast.unparse(node.func), given)
    except (TypeError, *_NO_PYTHON):
        return TextCall(start, end, why=SHAPE)


def _literal(node: ast.expr) -> Any:
    """Raises ValueError for anything but a literal of JSON's types; true, false and null are some."""
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return _NAMES[node.id]
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_literal(each) for each in node.elts]
    if isinstance(node, ast.Dict):
        keys = [_literal(each) if each else None for each in node.keys]
        if not all(isinstance(each, str) for each in keys) or len(set(keys)) < len(keys):
            raise ValueError("keys")
        return dict(zip(keys, map(_literal, node.values), strict=True))
    value = ast.literal_eval(node)
    if not isinstance(value, (str, int, float, bool, type(None))):
        raise ValueError("no JSON")  # noqa: TRY004 - a literal of another kind
    return value


def frame_result(said: str) -> str:
    return said

"""Argument values: how the value of one argument is written as text, in a place that holds texts.

Standard library only: this runs in a box.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    Pairs = list[tuple[str, str]]

MAX_NESTING = 16
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?|")
_DELIMITERS = {"form": ",", "simple": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}


class ArgumentRefused(ValueError):
    """An argument cannot be sent. The message names it and says what to do; ``argument`` is its name, or empty."""

    def __init__(self, argument: str, message: str) -> None:
        super().__init__(f"{argument}: {message}" if argument else message)
        self.argument = argument


def flatten_value(name: str, value: Any) -> list[tuple[str, str]]:
    """A value as ``(key, text)`` of its entries; keys are empty but for an object's."""
    if isinstance(value, dict):
        return [(key, write_scalar(name, each)) for key, each in value.items() if each is not None]
    if isinstance(value, list):
        return [("", write_scalar(name, each)) for each in value]
    return [("", write_scalar(name, value))]


def write_scalar(name: str, value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return dump_json(name, value)
        case None:
            raise ArgumentRefused(name, "Null cannot be written there. Leave it out.")
        case _:
            raise ArgumentRefused(name, "A list or an object cannot be written within another one there.")


def dump_json(name: str, value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (ValueError, RecursionError) as error:  # UnicodeEncodeError is one
        raise ArgumentRefused(
            name, "It holds what is no JSON: NaN, half of a character, or endless nesting."
        ) from error
    return text


def encode_text(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentRefused(name, "It holds half of a character.") from error


def quote_text(name: str, text: str) -> str:
    return quote(encode_text(name, text), safe="")


def join_texts(texts: Sequence[tuple[str, str]], between: str, sign: str) -> str:
    return between.join(f"{key}{sign}{text}" if key else text for key, text in texts)


# Headers.


def is_token(name: str) -> bool:
    """Whether a header or a cookie can be called so (RFC 9110, 5.6.2)."""
    return _TOKEN.fullmatch(name) is not None


def write_header(said: dict[str, Any], value: Any) -> str:
    name = said["argument"]
    if said.get("as_json"):
        return check_header(name, dump_json(name, value))
    return check_header(name, join_texts(flatten_value(name, value), ",", "=" if said.get("explode") else ","))


def check_header(name: str, text: str) -> str:
    if not _HEADER_VALUE.fullmatch(text):
        raise ArgumentRefused(name, "A header's value is printable ASCII on one line, without spaces at its ends.")
    return text


# ``key=value`` of a query or a form.


def fold_name(name: str) -> str:
    """The name of a parameter as the most forgiving service reads it: ``Key[]`` and ``key`` are one."""
    return name.partition("[")[0].lower()


def write_pairs(said: dict[str, Any], value: Any, taken: set[str], credentials: Container[str] = frozenset()) -> Pairs:
    """Keys and values of one argument, both encoded. ``taken``: names that an object's own keys must not become, since a second value
    would pass by what was decided about the first; ``credentials``: those that the gate says, folded."""
    name, style = said["argument"], said.get("style", "form")
    explode = said.get("explode", style in ("form", "deepObject"))
    key = quote_text(name, said["name"])
    if said.get("as_json"):
        return [(key, quote_text(name, dump_json(name, value)))]
    if style == "deepObject" and isinstance(value, dict | list):
        nested = list(_nested(name, said["name"], value, 0))
        _check_own_names(name, (path for path, _ in nested), taken, credentials)
        return [(quote_text(name, path), quote_text(name, text)) for path, text in nested]
    if not isinstance(value, dict | list):
        return [(key, quote_text(name, write_scalar(name, value)))]
    texts = flatten_value(name, value)
    if explode and isinstance(value, dict):
        _check_own_names(name, value, taken, credentials)
        return [(quote_text(name, each), quote_text(name, text)) for each, text in texts]
    if explode:
        return [(key, quote_text(name, text)) for _, text in texts]
    sign = _DELIMITERS.get(style, ",")
    quoted = [(each and quote_text(name, each), quote_text(name, text)) for each, text in texts]
    return [(key, join_texts(quoted, sign, sign))] if quoted else []


def _check_own_names(name: str, keys: Iterable[str], taken: Container[str], credentials: Container[str]) -> None:
    for key in keys:
        if key in taken or fold_name(key) in credentials:
            raise ArgumentRefused(name, f"Its key {key[:60]!a} is a parameter of its own. Leave it out.")


def _nested(name: str, path: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """``path[key][0]=text``, as deepObject is written where it goes on below its first level."""
    if depth > MAX_NESTING:
        raise ArgumentRefused(name, f"It is nested more than {MAX_NESTING} levels deep.")
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _nested(name, f"{path}[{_check_key(name, key)}]", inner, depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _nested(name, f"{path}[{index}]", inner, depth + 1)
    else:
        yield path, "" if value is None else write_scalar(name, value)


def _check_key(name: str, key: str) -> str:
    if "[" in key or "]" in key:
        raise ArgumentRefused(name, f"A key of it holds a bracket, so it would be read as another: {key[:60]!a}.")
    return key

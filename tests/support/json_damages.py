"""JSON damages: schemas with values that they hold for, and the slips that models make when they write them down."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

WORDS = ["name", "title", "count", "Größe", "city", "it's", "a // b", "日本", "tags", "e-mail"]
KEYS = ["name", "title", "count", "city", "tags", "price", "is_open", "notes", "total_2", "unit"]


def make_document(chance: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema of an object, and a value that it holds for: with a text of two lines and a word, so that every slip has its place."""
    inner, value = _make_part(chance, 0)
    schema = _close_object({"text": {"type": "string"}, "is_done": {"type": "boolean"}, "value": inner})
    return schema, {"text": "two\nlines " + chance.choice(WORDS), "is_done": chance.random() < 0.5, "value": value}


def _close_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _make_part(chance: random.Random, depth: int) -> tuple[dict[str, Any], Any]:
    kinds = ["object", "array"] if depth == 0 else ["string", "integer", "number", "boolean", "null", "enum"]
    kinds += ["object", "array"] if 0 < depth < 3 else []
    match chance.choice(kinds):
        case "object":
            parts = {key: _make_part(chance, depth + 1) for key in chance.sample(KEYS, chance.randint(1, 4))}
            schema = _close_object({key: part for key, (part, _) in parts.items()})
            return schema, {key: value for key, (_, value) in parts.items()}
        case "array":
            part, value = _make_part(chance, depth + 1)
            return {"type": "array", "items": part, "minItems": 1}, [value] * chance.randint(1, 3)
        case "string":
            return {"type": "string", "maxLength": 80}, " ".join(chance.sample(WORDS, chance.randint(1, 4)))
        case "integer":
            return {"type": "integer", "minimum": -1000}, chance.randint(-1000, 10**6)
        case "number":
            return {"type": "number"}, round(chance.uniform(-10, 10), 3)
        case "boolean":
            return {"type": "boolean"}, chance.random() < 0.5
        case "null":
            return {"type": ["null", "string"]}, None
        case _:
            return {"enum": WORDS}, chance.choice(WORDS)


def _write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _quote_singly(text: str) -> str:
    body = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{body}'"


def _write_as_python(value: Any, *, quote: Callable[[str], str], bare_keys: bool = False) -> str:
    def write(inner: Any) -> str:
        return _write_as_python(inner, quote=quote, bare_keys=bare_keys)

    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{key if bare_keys else quote(key)}: {write(each)}" for key, each in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(write, value)) + "]"
    return quote(value) if isinstance(value, str) else json.dumps(value)


def _outside_of_strings(text: str, change: Callable[[str], str]) -> str:
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    return "".join(part if at % 2 else change(part) for at, part in enumerate(parts))


def _use_words_of_python(text: str) -> str:
    for word, other in (("true", "True"), ("false", "False"), ("null", "None")):
        text = re.sub(rf"\b{word}\b", other, text)
    return text


# Slips that have one meaning: the value is read as it was meant.
CLEAR: dict[str, Callable[[Any], str]] = {
    "a fence": lambda value: f"```json\n{_write(value)}\n```",
    "text around": lambda value: f"Here is what you asked for:\n\n{_write(value)}\n\nI hope that helps!",
    "text around a fence": lambda value: f"Sure.\n```json\n{_write(value)}\n```\nAnything else?",
    "a byte order mark": lambda value: "\ufeff" + _write(value),
    "commas too many": lambda value: _outside_of_strings(
        _write(value), lambda text: re.sub(r"(?=\n *[\]}])", ",", text)
    ),
    "single quotes": lambda value: _write_as_python(value, quote=_quote_singly),
    "keys without quotes": lambda value: _write_as_python(value, quote=json.dumps, bare_keys=True),
    "words of Python": lambda value: _outside_of_strings(_write(value), _use_words_of_python),
    "comments": lambda value: _outside_of_strings(_write(value), lambda text: text.replace("\n", " // so\n/* and */ ")),
    "raw line breaks": lambda value: _write(value).replace("\\n", "\n"),
}
# Those that have none, or that would be a guess: refused, and the model is asked again.
UNCLEAR: dict[str, Callable[[Any], str]] = {
    "an end that is missing": lambda value: _write(value)[:-1].rstrip(),
    "two documents": lambda value: f"{_write(value)}\n{_write(value)}",
    "NaN": lambda value: json.dumps([value, float("nan")]),
    "a key twice": lambda value: '{"a": %s, "a": 1}' % _write(value),  # noqa: UP031 - braces are meant
    "quotes within quotes": lambda value: json.dumps({"a": 'say "so" now', "b": value}).replace('\\"', '"'),
    "no document": lambda value: "I am sorry, I cannot do that.",
}

"""File format: how a configuration file is read from text, and written as one.

JSON or YAML, whichever it is. YAML is read as JSON means it: words, numbers, true, false and null; dates, `yes` and `12:30` are
texts. What could make a small file large or a clear file ambiguous is refused before anything is built from it: anchors,
aliases, tags, deep nesting and names that stand twice.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import yaml

from toolhub.configuration.findings import build_invalid_problem
from unitools.strict_json import STRICT, JsonRefused, build_unique_object

if TYPE_CHECKING:
    from toolhub.configuration.problems import ConfigurationInvalid

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32
MAX_NODES = 200_000
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_NULL, _BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
# YAML's JSON schema, and the two ways in which people leave a value out.
_WORDS: list[tuple[str, re.Pattern[str], list[str | None]]] = [
    (_NULL, re.compile(r"(?:null|Null|NULL|~|)\Z"), ["n", "N", "~", "", None]),
    (_BOOL, re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")),
    (_INT, re.compile(r"-?(?:0|[1-9][0-9]*)\Z"), list("-0123456789")),
    (_FLOAT, re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z"), list("-0123456789")),
]


class _YamlLoader(_SafeLoader):  # type: ignore[misc]
    """PyYAML's safe loader with fewer words that are not texts."""

    yaml_implicit_resolvers: dict[str | None, Any] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        del deep
        return build_unique_object([(_name(key), self.construct_object(value, deep=True)) for key, value in node.value])


class _YamlDumper(_SafeDumper):  # type: ignore[misc]
    """Writes in quotes what the loader would not read as a text."""

    yaml_implicit_resolvers: dict[str | None, Any] = {}

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _tag, _pattern, _first in _WORDS:
    for _letter in _first:
        for _each in (_YamlLoader, _YamlDumper):
            _each.yaml_implicit_resolvers.setdefault(_letter, []).append((_tag, _pattern))


def _name(node: Any) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise build_invalid_problem("", f"Line {node.start_mark.line + 1}: a name in an object is a word.")
    return str(node.value)


def _build_problem(refusal: JsonRefused) -> ConfigurationInvalid:
    match refusal.code:
        case "duplicate_key":
            sentence = f"The name {refusal.subject[:80]!r} stands twice in one object."
            return build_invalid_problem("", sentence, remedy="Keep one of the two.")
        case "not_a_number":
            return build_invalid_problem("", f"{refusal.subject} is no number here.")
        case "too_deep":
            return build_invalid_problem("", f"The file is nested more than {MAX_DEPTH} levels deep.")
        case "bad_text":
            return build_invalid_problem("", "The file holds a character that is no text.")
        case _:
            return build_invalid_problem("", "The file holds a number that is too large.")


def read_text(raw: str | bytes) -> Any:
    """The value that the text writes; :class:`ConfigurationInvalid` says what cannot be read and where."""
    if len(raw if isinstance(raw, bytes) else raw.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise build_invalid_problem(
            "", f"The file has more than {MAX_BYTES:,} bytes.", remedy="Split it: a file may hold some sections only."
        )
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
    except UnicodeDecodeError as error:
        raise build_invalid_problem("", "The file is not UTF-8 text.") from error
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise build_invalid_problem(
            "", "The file is empty.", remedy="Export a tenant's configuration to see what a file looks like."
        )
    value = _json(text) if text.lstrip().startswith("{") else _yaml(text)
    _check_storable(value)
    return value


def _json(text: str) -> Any:
    try:
        return STRICT.read(text)
    except JsonRefused as refusal:
        if not (syntax := refusal.syntax):
            raise _build_problem(refusal) from refusal
        if syntax.msg.startswith(("Expecting property name", "Expecting value", "Expecting ',' delimiter")):
            return _yaml(text)  # braces are YAML's too
        place = f"Line {syntax.lineno}, column {syntax.colno}"
        raise build_invalid_problem("", f"{place}: {syntax.msg}.") from refusal


def _yaml(text: str) -> Any:
    """Events first, one at a time: they show aliases, tags and depth before anything is built."""
    try:
        _check_events(text)
        return yaml.load(text, Loader=_YamlLoader)  # noqa: S506  a safe loader with fewer types
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"Line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        said = getattr(error, "problem", None) or "the text is neither JSON nor YAML"
        raise build_invalid_problem("", f"{place}{said}."[:300]) from error
    except JsonRefused as refusal:
        raise _build_problem(refusal) from refusal
    except ValueError as error:
        raise build_invalid_problem("", f"The file cannot be read: {error}"[:300]) from error


def _check_events(text: str) -> None:
    depth = nodes = 0
    for event in yaml.parse(text, Loader=_SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise build_invalid_problem(
                "", f"Line {line}: anchors and aliases are not read.", remedy="Write the value out."
            )
        if getattr(event, "tag", None):
            raise build_invalid_problem("", f"Line {line}: tags are not read.", remedy="Take the tag away.")
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise build_invalid_problem("", f"Line {line}: the file is nested more than {MAX_DEPTH} levels deep.")
        if nodes > MAX_NODES:
            raise build_invalid_problem("", f"The file has more than {MAX_NODES:,} values.", remedy="Split it.")


def _check_storable(value: Any) -> None:
    """Depth of JSON, and characters that no database keeps."""
    pending: list[tuple[Any, int]] = [(value, 0)]
    while pending:
        each, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise build_invalid_problem("", f"The file is nested more than {MAX_DEPTH} levels deep.")
        if isinstance(each, dict):
            pending += [(part, depth + 1) for pair in each.items() for part in pair]
        elif isinstance(each, list):
            pending += [(part, depth + 1) for part in each]
        elif isinstance(each, str) and ("\0" in each or not _is_text(each)):
            raise build_invalid_problem("", "The file holds a character that is no text.")
        elif isinstance(each, float) and each in (float("inf"), float("-inf")):
            raise build_invalid_problem("", "The file holds a number that is too large.")


def _is_text(value: str) -> bool:
    return not any(0xD800 <= ord(letter) < 0xE000 for letter in value)


def write_text(document: Any, form: str = "yaml") -> str:
    """``yaml`` or ``json``; what :func:`read_text` reads back as the same."""
    if form == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return str(yaml.dump(document, Dumper=_YamlDumper, sort_keys=False, allow_unicode=True, width=110))

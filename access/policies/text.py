"""Policy text: read from what a person types, and written for one.

JSON or YAML, whichever it is. Only data comes out: no aliases, tags, dates or keys that stand twice, so that what a reader
sees is what is meant.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

from access.policies.findings import PolicyFinding
from access.policies.language import MAX_BYTES
from kernel.problems import SchemaInvalid
from unitools.strict_json import STRICT, JsonRefused, build_unique_object

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_DEPTH = 24
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def build_findings_problem(findings: Iterable[PolicyFinding]) -> SchemaInvalid:
    """The problem that findings make."""
    found = [finding.to_json() for finding in findings]
    first = next(each for each in found if each["severity"] == "error")
    return SchemaInvalid(
        f"This is no policy: {first['message']} (at {first['pointer'] or '/'})",
        details={"findings": found},
        remedy=first["fix"],
    )


def _refuse(message: str, fix: str) -> NoReturn:
    raise build_findings_problem([PolicyFinding("", "text", message, fix)])


def read_text(text: str) -> Any:
    """The document; :class:`SchemaInvalid` when the text is not JSON or YAML data."""
    if len(text.encode("utf-8", "surrogatepass")) > 2 * MAX_BYTES:
        _refuse(f"The text has more than {2 * MAX_BYTES:,} bytes.", "Make it smaller.")
    if not text.lstrip().startswith("{"):
        return _yaml(text)
    try:
        return STRICT.read(text)
    except JsonRefused as refusal:
        if (syntax := refusal.syntax) is None:
            _refuse_json(refusal)
        try:
            return _yaml(text)  # braces may be YAML's too
        except SchemaInvalid:
            _refuse(f"Line {syntax.lineno}, column {syntax.colno}: {syntax.msg}.", "Correct the text there.")


def _refuse_json(refusal: JsonRefused) -> NoReturn:
    match refusal.code:
        case "duplicate_key":
            _refuse(f"The name {refusal.subject[:80]!r} stands twice in one object.", "Keep one of the two.")
        case "not_a_number":
            _refuse(f"{refusal.subject} is no number here.", "Write a whole number.")
        case "too_deep":
            _refuse(f"The text is nested more than {MAX_DEPTH} levels deep.", "Make it flatter.")
        case "bad_text":
            _refuse("The text holds a character that is no text.", "Take it out.")
        case _:
            _refuse("A number is too large.", "Write a smaller whole number.")


def _yaml(text: str) -> Any:
    """Events first: they show aliases, tags and depth before anything is built."""
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                _refuse("Anchors and aliases are not read.", "Write the value out.")
            if getattr(event, "tag", None):
                _refuse("Tags are not read.", "Take the tag away.")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                _refuse(f"The text is nested more than {MAX_DEPTH} levels deep.", "Make it flatter.")
        node = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"Line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        _refuse(f"{place}{getattr(error, 'problem', None) or 'the text cannot be read'}.", "Write JSON or YAML.")
    try:
        return None if node is None else _built(node)
    except JsonRefused as refusal:
        _refuse_json(refusal)


_PLAIN = re.compile("0|-?[1-9][0-9]{0,17}")
_SCALARS = ("str", "int", "bool", "null")


def _built(node: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        return build_unique_object([(_key(key), _built(value)) for key, value in node.value])
    if isinstance(node, yaml.SequenceNode):
        return [_built(each) for each in node.value]
    kind = node.tag.rpartition(":")[2]
    if kind not in _SCALARS:
        _refuse(f"{node.value[:80]!r} is read as a {kind} by YAML.", "Put it in quotes, or write a whole number.")
    if kind == "bool" and node.value not in ("true", "false"):
        _refuse(f"{node.value!r} could be a word or true or false.", "Write true or false, or put it in quotes.")
    if kind == "int" and not _PLAIN.fullmatch(node.value):
        _refuse(f"{node.value[:80]!r} is a number in a form that people read differently.", "Write it in digits.")
    match kind:
        case "null":
            return None
        case "bool":
            return node.value == "true"
        case "int":
            return int(node.value)
        case _:
            return node.value


def _key(node: Any) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag.endswith((":merge", ":null")):
        _refuse("A name in an object is a word.", "Write it as a text.")
    return str(node.value)


def write_text(document: Any, form: str = "json") -> str:
    """For editing: ``json`` or ``yaml``."""
    if form == "yaml":
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    return json.dumps(document, indent=2, ensure_ascii=False)

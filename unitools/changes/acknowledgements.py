"""Acknowledgements: which changes somebody who approves a version must have seen one by one, and why.

What can break a caller, what reaches further, and what a model goes by: each of them can look small in a long table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.changes.kinds import RISKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RISK, BREAKING, TEXT = "risk", "breaking", "text"

# Models are sent the name that people see, the description and both schemas of a tool.
READ_BY_MODELS = ("display_name.", "description.", "input.", "output.")
# What these change is a text, or what a model takes for one: how a property is called, what it is when it is left out.
TEXT_KINDS = (
    "display_name.changed", "description.changed", "title_changed", "description_changed", "comment_changed",
    "examples_changed", "default_changed", "property_added",
)  # fmt: skip
# Keywords of a schema that have no room for words. Whatever else an added schema has may be read as a text.
WORDLESS = frozenset({
    "type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties", "deprecated",
    "readOnly", "writeOnly", "items", "prefixItems", "contains", "additionalProperties", "unevaluatedItems",
    "unevaluatedProperties", "anyOf", "oneOf", "allOf", "not", "if", "then", "else",
})  # fmt: skip


def find_acknowledgement_reason(change: Mapping[str, Any]) -> str:
    """Why a change must be acknowledged: of high risk, breaking, or a text that models go by; empty: it need not be.

    ``change``: as :meth:`unitools.changes.ManifestChange.to_json` writes it.
    """
    if change["risk"] == "high":
        return RISK
    if change["bump"] == "major":
        return BREAKING
    kind = str(change["kind"])
    if kind.startswith(READ_BY_MODELS) and change["after"] is not None:
        is_text = not kind.endswith("type_changed") and _holds_text(change["after"])
        return TEXT if is_text or kind.endswith(TEXT_KINDS) else ""
    return ""


def find_worst_risk(changes: Iterable[Mapping[str, Any]]) -> str:
    """Of all changes together: ``low``, ``medium`` or ``high``; empty where there are none."""
    return max((str(change["risk"]) for change in changes), key=RISKS.index, default="")


def is_breaking(changes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether any of them needs a new MAJOR."""
    return any(change["bump"] == "major" for change in changes)


def _holds_text(value: Any) -> bool:
    """Whether what is there now brings words of its own. A value too long to be kept whole is a text: its beginning."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str) or (isinstance(node, dict) and node.keys() - WORDLESS):
            return True
        if isinstance(node, dict):
            stack += (part for keyword, part in node.items() if keyword != "type")
        elif isinstance(node, list):
            stack += node
    return False

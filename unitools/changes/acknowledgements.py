"""Acknowledgements: which changes somebody who approves a version must have seen one by one, and why.

What can break a caller, what reaches further, and what a model goes by: each of them can look small in a long table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.changes.kinds import RISKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RISK, BREAKING, TEXT = "risk", "breaking", "text"

# Models are sent the description and both schemas of a tool.
READ_BY_MODELS = ("description.", "input.", "output.")
TEXT_KINDS = ("description.changed", "title_changed", "description_changed", "comment_changed", "examples_changed")
TEXT_WORDS = frozenset({"title", "description", "$comment", "examples", "enum", "const", "default"})


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
        return TEXT if kind.endswith(TEXT_KINDS) or _holds_text(change["after"]) else ""
    return ""


def find_worst_risk(changes: Iterable[Mapping[str, Any]]) -> str:
    """Of all changes together: ``low``, ``medium`` or ``high``; empty where there are none."""
    return max((str(change["risk"]) for change in changes), key=RISKS.index, default="")


def is_breaking(changes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether any of them needs a new MAJOR."""
    return any(change["bump"] == "major" for change in changes)


def _holds_text(value: Any) -> bool:
    """Whether a schema that was added brings words of its own."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if TEXT_WORDS & node.keys():
                return True
            stack += node.values()
        elif isinstance(node, list):
            stack += node
    return False

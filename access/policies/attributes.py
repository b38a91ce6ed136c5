"""Attributes: what a rule may ask about a call.

The table is closed: an attribute that is not here is a mistake in a policy, never a condition that silently holds. The
values arrive as one flat dict for each call, which evidence keeps as ``decision_input``; an attribute that is missing
there, or None, is *absent*.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy

from unitools.expressions import DOMAINS, EFFECTS, SAFETY_CLASSES

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class AttributeType(StrEnum):
    TOOL = "tool"
    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    SET = "set"


@dataclass(frozen=True, slots=True)
class Attribute:
    """``values``: all that there are, where the set is closed. ``optional``: may be absent in a well-formed call."""

    name: str
    type: AttributeType
    label: _StrPromise
    optional: bool = False
    values: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None


_ALL = (
    Attribute("tool", AttributeType.TOOL, gettext_lazy("tool")),
    Attribute("group", AttributeType.TEXT, gettext_lazy("group of the tool")),
    Attribute("tool_major", AttributeType.NUMBER, gettext_lazy("major version of the tool")),
    Attribute("tags", AttributeType.SET, gettext_lazy("tags of the tool")),
    Attribute("side_effect", AttributeType.TEXT, gettext_lazy("side effect"), values=EFFECTS),
    Attribute("safety_class", AttributeType.TEXT, gettext_lazy("safety class"), values=SAFETY_CLASSES),
    Attribute("domains", AttributeType.SET, gettext_lazy("capability domains of the tool"), values=DOMAINS),
    Attribute("agent", AttributeType.TEXT, gettext_lazy("id of the agent")),
    Attribute("agent_name", AttributeType.TEXT, gettext_lazy("name of the agent")),
    Attribute("origin", AttributeType.TEXT, gettext_lazy("origin of the call"), values=("api", "llm", "mcp", "system")),
    Attribute("dry_run", AttributeType.FLAG, gettext_lazy("dry run")),
    Attribute("model", AttributeType.TEXT, gettext_lazy("model"), optional=True),
    Attribute(
        "model_verified", AttributeType.TEXT, gettext_lazy("connected model that proposed the call"), optional=True
    ),
    Attribute("model_compatible", AttributeType.FLAG, gettext_lazy("model is compatible with the tool"), optional=True),
    Attribute("client_app", AttributeType.TEXT, gettext_lazy("client application"), optional=True),
    Attribute("user_present", AttributeType.FLAG, gettext_lazy("a user is named")),
    Attribute("consent", AttributeType.FLAG, gettext_lazy("a valid consent exists")),
    Attribute("data_classes", AttributeType.SET, gettext_lazy("classes of data that a model's request holds")),
    Attribute("allow_sensitive", AttributeType.FLAG, gettext_lazy("sensitive data is to be sent to a model unmasked")),
    Attribute("bytes_in", AttributeType.NUMBER, gettext_lazy("bytes of the arguments")),
    Attribute("hour", AttributeType.NUMBER, gettext_lazy("hour of the day (UTC)"), most=23),
    Attribute("weekday", AttributeType.NUMBER, gettext_lazy("day of the week (Monday is 1)"), least=1, most=7),
    Attribute("trusted", AttributeType.FLAG, gettext_lazy("the version is trusted")),
    Attribute("signed", AttributeType.FLAG, gettext_lazy("the publisher has signed the version")),
    Attribute("signed_by", AttributeType.TEXT, gettext_lazy("id of the key that signed the version"), optional=True),
)
NO_REQUEST = {"data_classes": [], "allow_sensitive": False}  # what a call has that asks no model
ATTRIBUTES: dict[str, Attribute] = {each.name: each for each in _ALL}

# Which atoms an attribute of a type takes; `has` and `not` go with every type.
ATOMS: dict[AttributeType, tuple[str, ...]] = {
    AttributeType.TOOL: ("equals", "in", "matches"),
    AttributeType.TEXT: ("equals", "in"),
    AttributeType.NUMBER: ("equals", "in", "at_least", "at_most"),
    AttributeType.FLAG: ("equals",),
    AttributeType.SET: ("contains",),
}


def list_atoms(attribute: Attribute) -> tuple[str, ...]:
    return (*ATOMS[attribute.type], "has", "not")

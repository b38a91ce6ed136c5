"""Kinds of differences: those told apart between two schemas, and what each means for callers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

Direction = Literal["input", "output"]


class SchemaEffect(StrEnum):
    TEXT = "text"  # what people and models read
    NOTE = "note"  # what callers go by, but no validator: a default, a deprecation
    SAME = "same"
    WIDENED = "widened"
    NARROWED = "narrowed"
    UNCLEAR = "unclear"


def join_effects(a: SchemaEffect, b: SchemaEffect) -> SchemaEffect:
    """What two effects come to when both count."""
    if a is b or a is SchemaEffect.SAME or b is SchemaEffect.SAME:
        return b if a is SchemaEffect.SAME else a
    return SchemaEffect.UNCLEAR


BUMPS: dict[Direction, dict[SchemaEffect, str]] = {
    "input": {SchemaEffect.WIDENED: "minor", SchemaEffect.NARROWED: "major", SchemaEffect.UNCLEAR: "major"},
    "output": {SchemaEffect.WIDENED: "major", SchemaEffect.NARROWED: "minor", SchemaEffect.UNCLEAR: "major"},
}

SCHEMA_KINDS = {  # what is different; read after the pointer
    "title_changed": "its title is another",
    "description_changed": "its description is another",
    "comment_changed": "its comment is another",
    "examples_changed": "its examples are others",
    "default_changed": "its default is another",
    "deprecated_changed": "it is marked deprecated, or no longer",
    "access_changed": "readOnly or writeOnly is another",
    "type_changed": "its type is another",
    "values_changed": "the values it lists are others",
    "minimum_changed": "its lower bound is another",
    "maximum_changed": "its upper bound is another",
    "multiple_of_changed": "what it must be a multiple of is another",
    "length_changed": "its allowed length is another",
    "pattern_changed": "its pattern is another",
    "format_changed": "its format is another",
    "content_changed": "its content encoding or media type is another",
    "items_changed": "what its items must be is another",
    "items_count_changed": "how many items it may have is another",
    "unique_items_changed": "whether its items may repeat is another",
    "contains_changed": "which items it must contain is another",
    "required_added": "the property `{after}` must be there now",
    "required_removed": "the property `{before}` may be left out now",
    "dependent_required_changed": "which properties need each other is another",
    "property_added": "a property was added",
    "property_removed": "a property was removed",
    "pattern_property_added": "a pattern of properties was added",
    "pattern_property_removed": "a pattern of properties was removed",
    "additional_properties_changed": "which further properties it may have is another",
    "property_names_changed": "how its properties may be called is another",
    "property_count_changed": "how many properties it may have is another",
    "dependent_schema_changed": "what a property asks of the others is another",
    "any_of_added": "an alternative was added",
    "any_of_removed": "an alternative was removed",
    "one_of_added": "an exclusive alternative was added",
    "one_of_removed": "an exclusive alternative was removed",
    "one_of_changed": "its exclusive alternatives are others",
    "all_of_added": "a further condition was added",
    "all_of_removed": "a condition was removed",
    "not_changed": "what it must not be is another",
    "condition_changed": "its if/then/else is another",
    "reference_changed": "it refers to another definition",
    "schema_replaced": "nothing or everything was allowed here on one side",
    "rewritten": "it is written in another way",
    "cannot_be_compared": "it cannot be compared",
}


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference. ``pointer`` leads into the new schema, for what was removed into the old one."""

    kind: str
    pointer: str
    before: Any
    after: Any
    effect: SchemaEffect

    def bump(self, direction: Direction) -> str:
        return compute_bump(self.effect, direction)


def compute_bump(effect: SchemaEffect, direction: Direction) -> str:
    """``minor`` when callers must learn of it, ``major`` when it can break them, ``patch`` when neither."""
    if effect in (SchemaEffect.TEXT, SchemaEffect.SAME):
        return "patch"
    return "minor" if effect is SchemaEffect.NOTE else BUMPS[direction][effect]

"""Compatibility: is each change between two schemas named with its place, and with what it does to the values that are valid?"""

from __future__ import annotations

from typing import Any

import pytest

from unitools.compatibility import SCHEMA_KINDS, SchemaEffect, compare_schemas, is_compatible
from unitools.compatibility.containment import Prover
from unitools.compatibility.schemas import Incomparable, Schema, SchemaPair

STRING, INTEGER, NUMBER, NULL = ({"type": each} for each in ("string", "integer", "number", "null"))
SAME, WIDENED, NARROWED, UNCLEAR = SchemaEffect.SAME, SchemaEffect.WIDENED, SchemaEffect.NARROWED, SchemaEffect.UNCLEAR


def thing(**words: Any) -> dict[str, Any]:
    return {"type": "object", **words}


def closed(**properties: Any) -> dict[str, Any]:
    return thing(properties=properties, additionalProperties=False)


def several(*types: str) -> dict[str, Any]:
    return {"type": list(types)}


KIND_A, KIND_B = (thing(properties={"kind": {"const": word}}, required=["kind"]) for word in "ab")
ONLY: dict[str, tuple[Any, Any, str, SchemaEffect]] = {
    # kind: before, after, pointer, effect. The other way round is tried as well.
    "title_changed": ({}, {"title": "x"}, "/title", SchemaEffect.TEXT),
    "description_changed": ({"description": "x"}, {"description": "y"}, "/description", SchemaEffect.TEXT),
    "comment_changed": ({}, {"$comment": "x"}, "/$comment", SchemaEffect.TEXT),
    "examples_changed": ({"items": {}}, {"items": {"examples": [1]}}, "/items/examples", SchemaEffect.TEXT),
    "default_changed": (closed(a={}), closed(a={"default": None}), "/properties/a/default", SchemaEffect.NOTE),
    "deprecated_changed": ({}, {"deprecated": True}, "/deprecated", SchemaEffect.NOTE),
    "access_changed": ({}, {"readOnly": True}, "/readOnly", SchemaEffect.NOTE),
    "type_changed": (INTEGER, NUMBER, "/type", WIDENED),
    "values_changed": ({"enum": [1, 2]}, {"enum": [2.0, 3, 1]}, "/enum", WIDENED),
    "minimum_changed": ({"minimum": 1}, {"exclusiveMinimum": 0}, "/minimum", WIDENED),
    "maximum_changed": ({"maximum": 1}, {"maximum": 2}, "/maximum", WIDENED),
    "multiple_of_changed": ({"multipleOf": 6}, {"multipleOf": 3}, "/multipleOf", WIDENED),
    "length_changed": ({"maxLength": 2}, {"maxLength": 3}, "/maxLength", WIDENED),
    "pattern_changed": ({"pattern": "^a"}, {}, "/pattern", WIDENED),
    "format_changed": (STRING, STRING | {"format": "date"}, "/format", NARROWED),
    "content_changed": ({"contentEncoding": "base64"}, {"contentEncoding": "base32"}, "/contentEncoding", UNCLEAR),
    "items_changed": ({"items": False}, {"items": True}, "/items", WIDENED),
    "items_count_changed": ({"minItems": 1}, {"minItems": 2}, "/minItems", NARROWED),
    "unique_items_changed": ({"uniqueItems": True}, {}, "/uniqueItems", WIDENED),
    "contains_changed": ({"contains": INTEGER}, {"contains": NUMBER}, "/contains", WIDENED),
    "required_added": ({"required": ["a"]}, {"required": ["b", "a"]}, "/required/0", NARROWED),
    "required_removed": ({"required": ["b", "a"]}, {"required": ["b"]}, "/required/1", WIDENED),
    "dependent_required_changed": ({}, {"dependentRequired": {"a": ["b"]}}, "/dependentRequired", NARROWED),
    "property_added": (closed(), closed(a=STRING), "/properties/a", WIDENED),
    "property_removed": (closed(a=STRING), closed(), "/properties/a", NARROWED),
    "pattern_property_added": (thing(), thing(patternProperties={"/~": STRING}), "/patternProperties/~1~0", NARROWED),
    "pattern_property_removed": (thing(patternProperties={"^x": STRING}), thing(), "/patternProperties/^x", WIDENED),
    "additional_properties_changed": (closed(), thing(properties={}), "/additionalProperties", WIDENED),
    "property_names_changed": (thing(), thing(propertyNames={"maxLength": 2}), "/propertyNames", NARROWED),
    "property_count_changed": (thing(maxProperties=2), thing(maxProperties=3), "/maxProperties", WIDENED),
    "dependent_schema_changed": (thing(), thing(dependentSchemas={"a": thing(required=["b"])}), "/dependentSchemas/a", NARROWED),
    "any_of_added": ({"anyOf": [STRING]}, {"anyOf": [NULL, STRING]}, "/anyOf/0", WIDENED),
    "any_of_removed": ({"anyOf": [STRING, NULL]}, {"anyOf": [STRING]}, "/anyOf/1", NARROWED),
    "one_of_added": ({"oneOf": [KIND_A]}, {"oneOf": [KIND_A, KIND_B]}, "/oneOf/1", WIDENED),
    "one_of_removed": ({"oneOf": [STRING, NULL]}, {"oneOf": [NULL]}, "/oneOf/0", NARROWED),
    "one_of_changed": ({"oneOf": [STRING]}, {"oneOf": [STRING, {"minLength": 1}]}, "/oneOf", UNCLEAR),
    "all_of_added": ({"allOf": [STRING]}, {"allOf": [STRING, {"minLength": 1}]}, "/allOf/1", NARROWED),
    "all_of_removed": ({"allOf": [STRING, INTEGER]}, {"allOf": [INTEGER]}, "/allOf/0", WIDENED),
    "not_changed": ({"not": STRING}, {"not": STRING | {"minLength": 1}}, "/not", WIDENED),
    "condition_changed": ({"if": STRING, "then": {"minLength": 1}}, {"if": NULL, "then": False}, "/if", UNCLEAR),
    "reference_changed": ({"$ref": "#/$defs/x", "minimum": 1}, {"minimum": 1}, "/$ref", WIDENED),
    "schema_replaced": (closed(a=False), closed(a=STRING), "/properties/a", WIDENED),
    "rewritten": ({"required": ["a", "b"]}, {"required": ["b", "a"]}, "", SAME),
    "cannot_be_compared": ({"x-unit": "m"}, {"x-unit": "ft"}, "/x-unit", UNCLEAR),
}  # fmt: skip
TURNED = {WIDENED: NARROWED, NARROWED: WIDENED}


@pytest.mark.req("TOOLS-9")
@pytest.mark.parametrize("kind", ONLY)
def test_each_kind_of_difference_is_named_alone_with_its_place_and_effect(kind: str) -> None:
    before, after, pointer, effect = ONLY[kind]

    (found,) = compare_schemas(before, after)

    assert (found.kind, found.pointer, found.effect) == (kind, pointer, effect)


@pytest.mark.parametrize("kind", ONLY)
def test_the_way_back_has_the_opposite_effect(kind: str) -> None:
    before, after, _, effect = ONLY[kind]

    (found,) = compare_schemas(after, before)

    assert found.effect == TURNED.get(effect, effect)


def test_every_kind_has_a_case() -> None:
    assert set(ONLY) == set(SCHEMA_KINDS)


@pytest.mark.req("TOOLS-9")
@pytest.mark.parametrize(
    ("effect", "as_input", "as_output"),
    [
        (SchemaEffect.TEXT, "patch", "patch"),
        (SchemaEffect.NOTE, "minor", "minor"),
        (SAME, "patch", "patch"),
        (WIDENED, "minor", "major"),
        (NARROWED, "major", "minor"),
        (UNCLEAR, "major", "major"),
    ],
)
def test_what_an_effect_needs_depends_on_the_direction(effect: SchemaEffect, as_input: str, as_output: str) -> None:
    found = next(change for *case, wanted in ONLY.values() if wanted is effect for change in compare_schemas(*case[:2]))

    assert (found.bump("input"), found.bump("output")) == (as_input, as_output)


RECURSIVE = {"$ref": "#/$defs/t", "$defs": {"t": thing(properties={"v": INTEGER, "next": {"$ref": "#/$defs/t"}})}}
WIDER = {"$ref": "#/$defs/t", "$defs": {"t": thing(properties={"v": NUMBER, "next": {"$ref": "#/$defs/t"}})}}
RENAMED = {"$ref": "#/$defs/u", "$defs": {"u": thing(properties={"v": INTEGER, "next": {"$ref": "#/$defs/u"}})}}
UNROLLED = thing(properties={"v": INTEGER, "next": {"$ref": "#"}})
OPEN_TO_TEXTS, EITHER, FEW = thing(additionalProperties=STRING), several("string", "integer"), {"minContains": 0}
WITHIN: dict[str, tuple[Any, Any]] = {  # all that the first accepts the second accepts
    "a type among several": (STRING, several("string", "null")),
    "one of the alternatives": (STRING, {"anyOf": [NULL, STRING]}),
    "several types as alternatives": (several("string", "null"), {"anyOf": [STRING, NULL]}),
    "several types as exclusive alternatives": (several("string", "null"), {"oneOf": [STRING, NULL]}),
    "alternatives of one type each": ({"anyOf": [STRING, NULL]}, several("null", "string")),
    "values of the type": ({"enum": ["a", "b"]}, STRING),
    "values within limits": ({"enum": [1, 2]}, INTEGER | {"minimum": 1, "maximum": 2}),
    "texts within lengths": ({"enum": ["a", "bc"]}, {"minLength": 1, "maxLength": 2}),
    "both booleans": ({"type": "boolean"}, {"enum": [True, False]}),
    "a whole float is an integer": ({"const": 2.0}, INTEGER),
    "limits of integers": (INTEGER | {"exclusiveMinimum": 0, "maximum": 2.5}, {"minimum": 1, "exclusiveMaximum": 3}),
    "a limit of what is no text": (STRING, STRING | {"minimum": 3, "required": ["a"], "items": False}),
    "an optional property where nothing else may be": (closed(a=STRING), closed(a=STRING, b=INTEGER)),
    "an optional property as wide as what else may be": (OPEN_TO_TEXTS, OPEN_TO_TEXTS | {"properties": {"a": STRING}}),
    "a property that the rest takes over": (OPEN_TO_TEXTS | {"properties": {"a": INTEGER}}, thing(additionalProperties=EITHER)),
    "the same pattern with more": (thing(patternProperties={"^a": INTEGER}), thing(patternProperties={"^a": NUMBER})),
    "a pattern over all that may be": (closed(a=INTEGER), thing(patternProperties={"a": NUMBER})),
    "as many properties as there are names": (closed(a={}, b={}), thing(maxProperties=2)),
    "as many properties as are needed": (thing(required=["a", "b"]), thing(minProperties=2)),
    "needed anyway": (thing(required=["b"]), thing(dependentRequired={"a": ["b"]})),
    "a list that is short enough": ({"maxItems": 1}, {"uniqueItems": True}),
    "a tuple as a list": ({"prefixItems": [INTEGER, INTEGER], "items": False}, {"items": NUMBER, "maxItems": 2}),
    "a list as a tuple": ({"items": INTEGER}, {"prefixItems": [NUMBER], "items": NUMBER}),
    "at least so many": ({"contains": INTEGER, "minContains": 2}, {"contains": NUMBER}),
    "at most so many": (FEW | {"contains": NUMBER, "maxContains": 1}, FEW | {"contains": INTEGER, "maxContains": 2}),
    "not something apart": (STRING, {"not": INTEGER}),
    "whatever the condition says": (STRING | {"minLength": 2}, {"if": {"pattern": "^a"}, "then": {"minLength": 1}, "else": STRING}),
    "a definition written out": (thing(required=["a"]), {"$ref": "#/$defs/x", "$defs": {"x": thing(required=["a"])}}),
    "a condition taken apart": (STRING | {"minLength": 1}, {"allOf": [STRING, {"minLength": 1}]}),
    "a definition of another name": (RECURSIVE, RENAMED),
    "a definition unrolled": (RECURSIVE, UNROLLED),
    "a wider definition of itself": (RECURSIVE, WIDER),
    "alternatives in another order": ({"anyOf": [STRING, NULL, INTEGER]}, {"anyOf": [NULL, INTEGER, STRING]}),
    "everything, said differently": (True, {}),
    "nothing": (False, STRING),
}  # fmt: skip
OUTSIDE: dict[str, tuple[Any, Any]] = {  # something that the first accepts the second refuses (or may refuse)
    "an optional property where anything could be": (thing(), thing(properties={"a": STRING})),
    "a property that other rules take over": (thing(properties={"a": STRING}), thing(additionalProperties=INTEGER)),
    "a property where a pattern ruled": (thing(patternProperties={"^a": INTEGER}, additionalProperties=False), closed(a=STRING)),
    "a pattern over a property": (closed(ab=STRING), closed(ab=STRING) | {"patternProperties": {"^a": INTEGER}}),
    "a second exclusive alternative that overlaps": ({"oneOf": [INTEGER]}, {"oneOf": [INTEGER, NUMBER]}),
    "true is not 1": ({"const": True}, {"enum": [1]}),
    "a number is not an integer": (NUMBER, INTEGER),
    "an open limit": ({"minimum": 1}, {"exclusiveMinimum": 1}),
    "a fraction between": (NUMBER | {"exclusiveMinimum": 0}, {"minimum": 1}),
    "a multiple that does not divide": ({"multipleOf": 3}, {"multipleOf": 6}),
    "a decimal multiple": ({"multipleOf": 0.02}, {"multipleOf": 0.01}),
    "a longer list": ({"maxItems": 2}, {"uniqueItems": True}),
    "a tuple that was longer": ({"prefixItems": [INTEGER, STRING]}, {"prefixItems": [INTEGER], "items": INTEGER}),
    "what follows a tuple": ({"prefixItems": [INTEGER]}, {"items": INTEGER}),
    "fewer may match a wider one": ({"contains": INTEGER, "maxContains": 1}, {"contains": NUMBER, "maxContains": 1}),
    "another pattern": ({"pattern": "^ab"}, {"pattern": "^a"}),
    "less that must not be": ({"not": STRING}, {"not": several("string", "null")}),
    "a narrower definition of itself": (WIDER, RECURSIVE),
    "the same words about another definition": (
        {"items": {"$ref": "#/$defs/x"}, "$defs": {"x": NUMBER}},
        {"items": {"$ref": "#/$defs/x"}, "$defs": {"x": INTEGER}},
    ),
    "a definition of a definition": (
        {"items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"items": {"$ref": "#/$defs/y"}}, "y": NUMBER}},
        {"items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"items": {"$ref": "#/$defs/y"}}, "y": INTEGER}},
    ),
    "unevaluated beside another property": (
        thing(properties={"a": {}, "b": {}}, unevaluatedProperties=False), thing(properties={"a": {}}, unevaluatedProperties=False),
    ),
    "a reference to outside": ({}, {"$ref": "https://example.org/schema"}),
    "a reference into nothing": ({}, {"$ref": "#/$defs/none"}),
    "a reference to itself": (STRING, {"$ref": "#"}),
    "anchors": ({"$anchor": "a", "items": {"$ref": "#a"}}, {"$anchor": "a", "items": {"$ref": "#a"}, "minItems": 1}),
    "a document in the document": (
        {"items": {"$id": "urn:x", "$ref": "#/$defs/y", "$defs": {"y": {}}}, "$defs": {"y": {}}},
        {"items": {"$id": "urn:x", "$ref": "#/$defs/y", "$defs": {"y": STRING}}, "$defs": {"y": {}}},
    ),
    "another dialect": ({}, {"$schema": "http://json-schema.org/draft-07/schema#"}),
    "a keyword of another form": ({}, {"minimum": "1"}),
    "no schema at all": ({}, 5),
    "a keyword that nobody knows": ({}, {"minimumSpeed": 5}),
}  # fmt: skip


@pytest.mark.req("TOOLS-9")
@pytest.mark.parametrize("name", WITHIN)
def test_what_is_proved(name: str) -> None:
    inner, outer = WITHIN[name]

    assert is_compatible(inner, outer, "input")
    assert is_compatible(outer, inner, "output")


@pytest.mark.req("TOOLS-9")
@pytest.mark.parametrize("name", OUTSIDE)
def test_what_must_not_be_called_compatible(name: str) -> None:
    inner, outer = OUTSIDE[name]

    assert not is_compatible(inner, outer, "input")
    assert not is_compatible(outer, inner, "output")


def test_a_definition_that_is_met_twice_keeps_the_worse_effect() -> None:
    """Found by random pairs: at ``a`` the definition says nothing new, at ``c`` it does, in the same line."""
    text = {"$ref": "#/$defs/e"}
    old = thing(
        properties={"a": text | {"minProperties": 0}, "c": {"anyOf": [text, INTEGER]}}, **{"$defs": {"e": STRING}}
    )
    new = thing(properties={"a": text, "c": text}, **{"$defs": {"e": STRING}})

    assert not is_compatible(old, new, "input")
    assert is_compatible(old, new, "output")


def test_a_change_in_a_definition_is_told_once_and_where_it_stands() -> None:
    uses = {name: {"$ref": "#/$defs/sku"} for name in ("a", "b", "c")}
    old = thing(properties=uses, **{"$defs": {"sku": STRING | {"maxLength": 5}}})
    new = thing(properties=uses, **{"$defs": {"sku": STRING | {"maxLength": 9, "title": "SKU"}}})

    assert [(each.kind, each.pointer) for each in compare_schemas(old, new)] == [
        ("title_changed", "/$defs/sku/title"),
        ("length_changed", "/$defs/sku/maxLength"),
    ]


def test_texts_are_found_where_nothing_else_changed() -> None:
    deep = closed(a={"anyOf": [{"items": {"not": {"title": "x"}}}]}) | {"unevaluatedItems": False}
    other = closed(a={"anyOf": [{"items": {"not": {"title": "y"}}}]}) | {"unevaluatedItems": False}

    assert [each.pointer for each in compare_schemas(deep, other)] == ["/properties/a/anyOf/0/items/not/title"]


def test_equal_schemas_do_not_differ() -> None:
    odd = {"$anchor": "x", "minimum": "1", "x": [{"$ref": "#x"}]}

    assert compare_schemas(odd, dict(reversed(odd.items()))) == []


def test_the_schemas_that_are_given_are_left_alone_even_when_they_share_parts() -> None:
    shared = {"$ref": "#/$defs/x"}
    old, new = {"items": shared, "$defs": {"x": NUMBER}}, {"items": shared, "$defs": {"x": INTEGER}}

    assert [each.effect for each in compare_schemas(old, new)] == [NARROWED]
    assert old == {"items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"type": "number"}}}


# Work.


def wide(word: str) -> dict[str, Any]:
    """About 100 KB, with a property of each object named anew."""
    properties = {
        f"p{i}": closed(**{f"{word}{j}": STRING | {"maxLength": j, "description": "A text. " * 8} for j in range(25)})
        for i in range(25)
    }
    return thing(
        properties=properties, anyOf=[thing(properties={"kind": {"const": i}, word: STRING}) for i in range(100)]
    )


def test_the_work_grows_with_the_documents_and_not_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = [0]
    original = Prover.spend

    def counting(self: Prover, steps: int = 1) -> None:
        spent[0] += steps
        original(self, steps)

    monkeypatch.setattr(Prover, "spend", counting)
    found = compare_schemas(wide("a"), wide("b"))

    assert "cannot_be_compared" not in {each.kind for each in found}
    assert 0 < spent[0] < 12_000


def test_work_without_end_is_given_up() -> None:
    links = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 2}"}]} for i in range(38)}
    schema = Schema({"$defs": links | {"d38": STRING, "d39": NULL}, "$ref": "#/$defs/d0"})
    prover = Prover(SchemaPair(schema, schema), max_steps=50)

    with pytest.raises(Incomparable):
        prover.within(INTEGER, schema.root)


def test_nesting_without_end_is_given_up() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"items": deep}
    long: dict[str, Any] = {f"d{i}": {"items": {"$ref": f"#/$defs/d{i + 1}"}, "minItems": 1} for i in range(500)}
    other = {name: each | {"minItems": 0} for name, each in long.items()}

    assert [each.kind for each in compare_schemas({}, deep)] == ["cannot_be_compared"]
    assert [
        each.kind
        for each in compare_schemas(*({"$ref": "#/$defs/d0", "$defs": d | {"d500": {}}} for d in (long, other)))
    ] == ["cannot_be_compared"]

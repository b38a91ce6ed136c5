"""Claims: what each keyword of a JSON Schema claims, and when a claim follows from another schema's keywords.

A rule answers for one claim of ``outer``: does it follow from the keywords that stand directly in ``inner``? A rule that
says yes must be right for every value; one that says no may be wrong, and the prover tries further ways then.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from unitools.compatibility.schemas import BY_INDEX, BY_NAME, EMPTY, IGNORED, NEVER, Node, as_node

if TYPE_CHECKING:
    from unitools.compatibility.containment import Prover

Claim = tuple[str, Any]
ALL = frozenset({"null", "boolean", "object", "array", "string", "integer", "fraction"})
NUMBERS = frozenset({"integer", "fraction"})
STRINGS, ARRAYS, OBJECTS = frozenset({"string"}), frozenset({"array"}), frozenset({"object"})
SPEAKS_OF = {  # a claim about other types of values holds for those that it does not speak of
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), NUMBERS),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), STRINGS),
    **dict.fromkeys(("minItems", "maxItems", "uniqueItems", "items", "prefixItems", "contains"), ARRAYS),
    **dict.fromkeys(("minProperties", "maxProperties", "required", "dependentRequired", "dependentSchemas"), OBJECTS),
    **dict.fromkeys(("properties", "patternProperties", "additionalProperties", "propertyNames"), OBJECTS),
}
_BY_PART = {"required", "dependentRequired", *BY_NAME, *BY_INDEX} - {"anyOf", "oneOf", "$defs", "definitions"}
_WITH_OTHERS = {"then", "else", "minContains", "maxContains"}


def make_value_key(value: Any) -> Any:
    """Equal for values that JSON Schema takes as equal: 1 and 1.0, but not 1 and true."""
    match value:
        case bool():
            return "boolean", value
        case int() | float():
            return "number", value
        case list():
            return "array", tuple(map(make_value_key, value))
        case dict():
            return "object", frozenset((name, make_value_key(each)) for name, each in value.items())
        case _:
            return "text", value


def get_value_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "integer" if value == value // 1 else "fraction"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def get_named_types(node: Node) -> frozenset[str]:
    said = node["type"] if isinstance(node["type"], list) else [node["type"]]
    return frozenset(said) - {"number"} | (NUMBERS if "number" in said else frozenset())


def list_claims(node: Node) -> list[Claim]:
    """What a schema claims of a value, in parts that can be shown one by one."""
    found: list[Claim] = [("false", "false")] if node is NEVER else []
    for keyword in node.keys() - IGNORED - _WITH_OTHERS if node is not NEVER else ():
        value = node[keyword]
        match keyword:
            case "dependentRequired":
                found += [(keyword, (name, needed)) for name, names in value.items() for needed in names]
            case "allOf" | "prefixItems":
                found += [(keyword, index) for index in range(len(value))]
            case _ if keyword in _BY_PART:
                found += [(keyword, name) for name in value]
            case _:
                found.append((keyword, keyword))
    return found


def _above(a: Any, b: Any) -> bool:
    """Larger, for validators that calculate with floating point numbers too."""
    try:
        return bool(a > b and float(a) > float(b))
    except OverflowError:
        return False


def serialize_value(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


class ClaimQuestion(NamedTuple):
    """Does the claim about ``name`` that ``outer`` makes follow from the keywords of ``inner``?"""

    prover: Prover
    inner: Node
    outer: Node
    name: Any  # the part that the claim is about (a property, an index); else the keyword
    level: int  # how many steps into the value

    def within(self, inner: Any, outer: Any) -> bool:
        """Of the same value."""
        return self.prover.within(inner, outer, self.level)

    def within_below(self, inner: Any, outer: Any) -> bool:
        """Of a value in it: an item, a property, a property's name."""
        return self.prover.within(inner, outer, self.level + 1)


Rule = Callable[[ClaimQuestion], bool]


# Values.


def _type(q: ClaimQuestion) -> bool:
    return q.prover.types(q.inner) <= get_named_types(q.outer)


def _listed(q: ClaimQuestion) -> bool:
    """``name`` is the keyword: enum or const."""
    few = q.prover.values(q.inner)
    if few is None:
        return False
    allowed = {make_value_key(value) for value in (q.outer["enum"] if q.name == "enum" else [q.outer["const"]])}
    types = q.prover.types(q.inner)
    return all(make_value_key(value) in allowed for value in few if get_value_type(value) in types)


def _bound(side: str, is_out: bool) -> Rule:
    word = f"exclusive{side.title()}imum" if is_out else f"{side}imum"

    def rule(q: ClaimQuestion) -> bool:
        if (known := q.prover.bound(q.inner, side)) is None:
            return False
        (limit, limit_is_out), wanted = known, q.outer[word]
        high, low = (limit, wanted) if side == "min" else (wanted, limit)
        return (_above(high, low) or (high == low and limit_is_out)) if is_out else bool(high >= low)

    return rule


def _multiple_of(q: ClaimQuestion) -> bool:
    """Only whole numbers divide exactly in every validator."""
    a, b = q.inner.get("multipleOf"), q.outer["multipleOf"]
    return a is not None and (a == b or (a % 1 == 0 and b % 1 == 0 and int(a) % int(b) == 0))


def _count(word: str) -> Rule:
    def rule(q: ClaimQuestion) -> bool:
        wanted, is_min = q.outer[word], word.startswith("min")
        known = [q.inner[word]] if word in q.inner else []
        known += [0] if is_min else []
        if word == "minProperties":
            known.append(len(set(q.inner.get("required", ()))))
        if word == "maxProperties" and as_node(q.inner.get("additionalProperties", True)) is NEVER:
            known += [len(q.inner.get("properties", ()))] if not q.inner.get("patternProperties") else []
        if word == "maxItems":
            known.append(q.prover.most_items(q.inner))
        if word.endswith("Length") and (few := q.prover.values(q.inner)) is not None:
            lengths = [len(value) for value in few if isinstance(value, str)]
            known += [min(lengths) if is_min else max(lengths)] if lengths else []
        return any(each >= wanted if is_min else each <= wanted for each in known)

    return rule


# Objects.


def _required(q: ClaimQuestion) -> bool:
    return q.name in q.inner.get("required", ())


def _dependent_required(q: ClaimQuestion) -> bool:
    given, needed = q.name
    return needed in (*q.inner.get("required", ()), *q.inner.get("dependentRequired", EMPTY).get(given, ()), given)


def _governing(node: Node, without: frozenset[str] = frozenset()) -> list[Any]:
    """The subschemas of which at least one holds for each property that ``properties`` does not name."""
    patterns = node.get("patternProperties", EMPTY)
    return [node.get("additionalProperties", True), *(each for name, each in patterns.items() if name not in without)]


def _property(q: ClaimQuestion) -> bool:
    named = q.inner.get("properties", EMPTY)
    given = [named[q.name]] if q.name in named else _governing(q.inner)
    return all(q.within_below(each, q.outer["properties"][q.name]) for each in given)


def _pattern_property(q: ClaimQuestion) -> bool:
    """Which names a pattern matches is not looked into: the same pattern, or whatever could be matched."""
    wanted, patterns = q.outer["patternProperties"][q.name], q.inner.get("patternProperties", EMPTY)
    if q.name in patterns and q.within_below(patterns[q.name], wanted):
        return True
    given = [*q.inner.get("properties", EMPTY).values(), *_governing(q.inner)]
    return all(q.within_below(each, wanted) for each in given)


def _additional(q: ClaimQuestion) -> bool:
    """It speaks of the names that ``outer`` neither lists nor matches: others of ``inner``, or those nobody names."""
    listed, matched = q.outer.get("properties", EMPTY), frozenset(q.outer.get("patternProperties", ()))
    given = [each for name, each in q.inner.get("properties", EMPTY).items() if name not in listed]
    given += _governing(q.inner, without=matched)
    return all(q.within_below(each, q.outer["additionalProperties"]) for each in given)


def _property_names(q: ClaimQuestion) -> bool:
    given = q.inner.get("propertyNames", True)
    return q.within_below(given, q.outer["propertyNames"])


def _dependent_schema(q: ClaimQuestion) -> bool:
    wanted, given = q.outer["dependentSchemas"][q.name], q.inner.get("dependentSchemas", EMPTY)
    return (q.name in given and q.within(given[q.name], wanted)) or q.within(q.inner, wanted)


# Arrays.


def _unique(q: ClaimQuestion) -> bool:
    return not q.outer["uniqueItems"] or q.inner.get("uniqueItems") is True or q.prover.most_items(q.inner) <= 1


def _item(q: ClaimQuestion) -> bool:
    """``name`` is an index of ``prefixItems``."""
    first = q.inner.get("prefixItems", ())
    given = first[q.name] if q.name < len(first) else q.inner.get("items", True)
    return q.prover.most_items(q.inner) <= q.name or q.within_below(given, q.outer["prefixItems"][q.name])


def _items(q: ClaimQuestion) -> bool:
    begin, first = len(q.outer.get("prefixItems", ())), q.inner.get("prefixItems", ())
    most = q.prover.most_items(q.inner)
    given = [each for index, each in enumerate(first) if begin <= index < most]
    given += [q.inner.get("items", True)] if most > max(begin, len(first)) else []
    return all(q.within_below(each, q.outer["items"]) for each in given)


def _contains(q: ClaimQuestion) -> bool:
    """At least as many items are matched by the wider schema, at most as many by the narrower one."""
    least, most = q.outer.get("minContains", 1), q.outer.get("maxContains")
    if "contains" not in q.inner:
        return least == 0 and most is None
    a, b = q.inner["contains"], q.outer["contains"]
    if least and (q.inner.get("minContains", 1) < least or not q.within_below(a, b)):
        return False
    return most is None or (q.inner.get("maxContains", float("inf")) <= most and q.within_below(b, a))


# Combinations.


def _reference(q: ClaimQuestion) -> bool:
    target = q.prover.pair.target(q.outer)
    return target is not None and q.within(q.inner, target[1])


def _all_of(q: ClaimQuestion) -> bool:
    return q.within(q.inner, q.outer["allOf"][q.name])


def _any_of(q: ClaimQuestion) -> bool:
    parts = q.outer["anyOf"]
    return any(q.prover.pair.same(q.inner, part) for part in parts) or any(q.within(q.inner, part) for part in parts)


def _one_of(q: ClaimQuestion) -> bool:
    """Exactly one is at least one when no two of them share a value; otherwise only the same list follows."""
    parts, given = q.outer["oneOf"], list(q.inner.get("oneOf", ()))
    if len(parts) == len(given) and _same_parts(q, given, parts):
        return True
    return any(q.within(q.inner, part) for part in parts) and q.prover.all_apart(parts)


def _same_parts(q: ClaimQuestion, given: list[Any], parts: list[Any]) -> bool:
    left = list(parts)
    for each in given:
        twin = next((index for index, part in enumerate(left) if q.prover.pair.same(each, part)), None)
        if twin is None:
            return False
        del left[twin]
    return not left


def _not(q: ClaimQuestion) -> bool:
    if "not" in q.inner and q.within(q.outer["not"], q.inner["not"]):
        return True
    return q.prover.apart(q.inner, q.outer["not"])


def _condition(q: ClaimQuestion) -> bool:
    then, other = q.outer.get("then", True), q.outer.get("else", True)
    if "if" in q.inner and q.prover.pair.same(q.inner["if"], q.outer["if"]):
        branches = (q.inner.get("then", True), then), (q.inner.get("else", True), other)
        if all(q.within(a, b) for a, b in branches):
            return True
    return q.within(q.inner, then) and q.within(q.inner, other)


def _whole(q: ClaimQuestion) -> bool:
    """What is unevaluated depends on everything beside it."""
    return q.outer[q.name] is True or q.prover.pair.same(q.inner, q.outer)


RULES: dict[str, Rule] = {
    "false": lambda _: False,
    "type": _type,
    "enum": _listed,
    "const": _listed,
    "multipleOf": _multiple_of,
    "minimum": _bound("min", is_out=False),
    "maximum": _bound("max", is_out=False),
    "exclusiveMinimum": _bound("min", is_out=True),
    "exclusiveMaximum": _bound("max", is_out=True),
    **{
        word: _count(word)
        for word in ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
    },
    "required": _required,
    "dependentRequired": _dependent_required,
    "properties": _property,
    "patternProperties": _pattern_property,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "dependentSchemas": _dependent_schema,
    "uniqueItems": _unique,
    "prefixItems": _item,
    "items": _items,
    "contains": _contains,
    "$ref": _reference,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _condition,
    "unevaluatedItems": _whole,
    "unevaluatedProperties": _whole,
}

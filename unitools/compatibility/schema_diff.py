"""Schema diff: the differences between two schemas, place by place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unitools.compatibility.claims import serialize_value
from unitools.compatibility.containment import Prover
from unitools.compatibility.kinds import SchemaChange, SchemaEffect, join_effects
from unitools.compatibility.schemas import (
    EMPTY,
    IGNORED,
    NEVER,
    NOTES,
    ONE,
    TEXTS,
    Incomparable,
    Node,
    SchemaPair,
    as_node,
    format_step,
    iterate_subschemas,
)

MAX_NESTING = 60

_TEXT_KINDS = dict(
    zip(TEXTS, ("title_changed", "description_changed", "comment_changed", "examples_changed"), strict=True)
)
_NOTE_KINDS = dict(
    zip(NOTES, ("default_changed", "deprecated_changed", "access_changed", "access_changed"), strict=True)
)
_GROUPS = {  # keywords that are compared as they stand, by the kind of their change
    "type_changed": ("type",),
    "values_changed": ("enum", "const"),
    "minimum_changed": ("minimum", "exclusiveMinimum"),
    "maximum_changed": ("maximum", "exclusiveMaximum"),
    "multiple_of_changed": ("multipleOf",),
    "length_changed": ("minLength", "maxLength"),
    "pattern_changed": ("pattern",),
    "format_changed": ("format",),
    "content_changed": ("contentEncoding", "contentMediaType", "contentSchema"),
    "items_count_changed": ("minItems", "maxItems"),
    "unique_items_changed": ("uniqueItems",),
    "dependent_required_changed": ("dependentRequired",),
    "property_count_changed": ("minProperties", "maxProperties"),
    "contains_changed": ("contains", "minContains", "maxContains"),
    "not_changed": ("not",),
}
_DESCENDED = {
    "required", "properties", "patternProperties", "additionalProperties", "propertyNames", "dependentSchemas",
    "items", "prefixItems", "allOf", "anyOf", "oneOf", "if", "then", "else", "$ref", "unevaluatedItems",
    "unevaluatedProperties",
}  # fmt: skip
_KNOWN = IGNORED | _DESCENDED | {word for words in _GROUPS.values() for word in words}


@dataclass(frozen=True, slots=True)
class _Place:
    old: str = ""
    new: str = ""

    def __truediv__(self, name: str | int) -> _Place:
        return _Place(self.old + format_step(name), self.new + format_step(name))


def _effect(*, widened: bool, narrowed: bool) -> SchemaEffect:
    """``widened``: all that was valid still is. ``narrowed``: all that is valid was."""
    if widened:
        return SchemaEffect.SAME if narrowed else SchemaEffect.WIDENED
    return SchemaEffect.NARROWED if narrowed else SchemaEffect.UNCLEAR


class SchemaDiff:
    """Goes through both schemas side by side. Each claim of either is compared by the keyword that makes it.

    Why the list is sound: a claim of the new schema follows from the old one when its keyword's change is ``widened`` or
    ``same``; where the walk descends (a property in both, an alternative and its counterpart) the claim follows when it does
    for the subschemas, because all of these places grow with what stands in them.
    """

    def __init__(self, pair: SchemaPair) -> None:
        self.pair, self.prover = pair, Prover(pair)
        self.found: dict[tuple[str, str, str], SchemaChange] = {}
        self.levels: dict[
            tuple[int, int], int | None
        ] = {}  # pairs that were begun: how deep in the value; None when done
        self.nesting = 0

    def changes(self) -> list[SchemaChange]:
        old, new = self.pair.old.root, self.pair.new.root
        self.node(old, new, _Place(), 0)
        for keyword in ("$defs", "definitions"):
            for name in old.get(keyword, EMPTY).keys() & new.get(keyword, EMPTY).keys():
                self.texts_below(old[keyword][name], new[keyword][name], _Place() / keyword / name)
        return list(self.found.values())

    def emit(self, kind: str, pointer: str, before: Any, after: Any, effect: SchemaEffect) -> None:
        """A definition can be met from several places: the same line stands once, with all that it does anywhere."""
        key = kind, pointer, serialize_value(after)
        if key in self.found:
            before, effect = self.found[key].before, join_effects(self.found[key].effect, effect)
        self.found[key] = SchemaChange(kind, pointer, before, after, effect)

    # Texts.

    def texts(self, old: Node, new: Node, at: _Place) -> None:
        for kinds, effect in ((_TEXT_KINDS, SchemaEffect.TEXT), (_NOTE_KINDS, SchemaEffect.NOTE)):
            for word, kind in kinds.items():
                if serialize_value([old.get(word), word in old]) != serialize_value([new.get(word), word in new]):
                    place = (at / word).new if word in new else (at / word).old
                    self.emit(kind, place, old.get(word), new.get(word), effect)

    def texts_below(self, old: Any, new: Any, at: _Place) -> None:
        """Of two subschemas that say the same otherwise."""
        waiting = [(as_node(old), as_node(new), at)]
        while waiting:
            a, b, here = waiting.pop()
            if self.pair.form(a) == self.pair.form(b):
                self.texts(a, b, here)
                others = dict(iterate_subschemas(b))
                for suffix, child in iterate_subschemas(a):
                    if suffix in others:
                        place = _Place(here.old + suffix, here.new + suffix)
                        waiting.append((as_node(child), as_node(others[suffix]), place))

    # Meaning.

    def node(self, old_value: Any, new_value: Any, at: _Place, level: int) -> None:
        old, new = as_node(old_value), as_node(new_value)
        key = id(old), id(new)
        if key in self.levels:
            if self.levels[key] == level:  # it refers to itself without a step into the value
                self.emit("cannot_be_compared", at.new, None, None, SchemaEffect.UNCLEAR)
            return
        self.prover.spend()
        self.texts(old, new, at)
        if self.pair.same(old, new):
            self.texts_below(old, new, at)
            return
        if old is NEVER or new is NEVER:
            self.emit("schema_replaced", at.new, old_value, new_value, self.between(old, new))
            return
        if self.nesting > MAX_NESTING:
            raise Incomparable
        self.nesting += 1
        self.levels[key] = level
        (old_place, target), (new_place, other) = self.followed(old, at.old), self.followed(new, at.new)
        if target is not old or other is not new:
            self.node(target, other, _Place(old_place, new_place), level)
        else:
            self.keywords(old, new, at, level)
        self.levels[key] = None
        self.nesting -= 1

    def followed(self, node: Node, place: str) -> tuple[str, Node]:
        """A subschema that says nothing of its own is what it refers to."""
        target = self.pair.target(node) if node.keys() - IGNORED == {"$ref"} else None
        return target or (place, node)

    def keywords(self, old: Node, new: Node, at: _Place, level: int) -> None:
        for kind, words in _GROUPS.items():
            self.group(kind, words, old, new, at)
        for kind, word in (
            ("items_changed", "unevaluatedItems"),
            ("additional_properties_changed", "unevaluatedProperties"),
        ):
            if word in old or word in new:
                self.emit(kind, (at / word).new, old.get(word), new.get(word), self.effect(old, new, (word,)))
        self.reference(old, new, at, level)
        self.properties(old, new, at, level)
        self.items(old, new, at, level)
        for keyword in ("allOf", "anyOf", "oneOf"):
            self.parts(keyword, old, new, at, level)
        self.condition(old, new, at, level)
        for word in sorted((old.keys() | new.keys()) - _KNOWN):
            if not self.alike(word, old, new):
                self.emit("cannot_be_compared", (at / word).new, old.get(word), new.get(word), SchemaEffect.UNCLEAR)

    def alike(self, word: str, old: Node, new: Node) -> bool:
        if word not in old or word not in new:
            return word not in old and word not in new
        return (
            self.pair.same(old[word], new[word])
            if word in ONE
            else serialize_value(old[word]) == serialize_value(new[word])
        )

    def follow(self, old: Node, new: Node, words: tuple[str, ...]) -> bool:
        """The claims that these keywords make in ``new``, given all that stands in ``old``."""
        return all(self.prover.follows(old, new, claim) for claim in self.prover.claims(new) if claim[0] in words)

    def effect(self, old: Node, new: Node, words: tuple[str, ...]) -> SchemaEffect:
        return _effect(widened=self.follow(old, new, words), narrowed=self.follow(new, old, words))

    def between(self, old: Any, new: Any) -> SchemaEffect:
        return _effect(widened=self.prover.within(old, new), narrowed=self.prover.within(new, old))

    def group(self, kind: str, words: tuple[str, ...], old: Node, new: Node, at: _Place) -> None:
        unlike = [word for word in words if not self.alike(word, old, new)]
        if unlike:
            before, after = ({word: side[word] for word in words if word in side} or None for side in (old, new))
            place = at / unlike[0]
            if len(words) == 1:
                before, after = old.get(words[0]), new.get(words[0])
            self.emit(kind, place.new if unlike[0] in new else place.old, before, after, self.effect(old, new, words))

    def single(self, kind: str, word: str, old: Node, new: Node, at: _Place, level: int) -> None:
        """One subschema for many values: further properties, items, names."""
        if self.alike(word, old, new):
            return
        a, b = old.get(word, True), new.get(word, True)
        if isinstance(a, dict) and isinstance(b, dict):
            self.node(a, b, at / word, level)
        else:
            place = at / word
            effect = _effect(
                widened=self.prover.within(a, b) or self.follow(old, new, (word,)),
                narrowed=self.prover.within(b, a) or self.follow(new, old, (word,)),
            )
            self.emit(kind, place.new if word in new else place.old, old.get(word), new.get(word), effect)

    def reference(self, old: Node, new: Node, at: _Place, level: int) -> None:
        ends = [self.pair.target(node) if "$ref" in node else None for node in (old, new)]
        if ends[0] and ends[1]:
            self.node(ends[0][1], ends[1][1], _Place(ends[0][0], ends[1][0]), level)
        elif "$ref" in old or "$ref" in new:
            effect = self.effect(old, new, ("$ref",))
            self.emit("reference_changed", (at / "$ref").new, old.get("$ref"), new.get("$ref"), effect)

    def properties(self, old: Node, new: Node, at: _Place, level: int) -> None:
        for name in dict.fromkeys((*new.get("required", ()), *old.get("required", ()))):
            was, is_now = name in old.get("required", ()), name in new.get("required", ())
            if was is not is_now:
                kind, side, place = ("required_added", new, at.new) if is_now else ("required_removed", old, at.old)
                follows = self.prover.follows(*((old, new) if is_now else (new, old)), ("required", name))
                effect = _effect(widened=was or follows, narrowed=is_now or follows)
                place += f"/required/{side['required'].index(name)}"
                self.emit(kind, place, name if was else None, name if is_now else None, effect)
        self.named("properties", "property", old, new, at, level)
        self.named("patternProperties", "pattern_property", old, new, at, level)
        self.single("additional_properties_changed", "additionalProperties", old, new, at, level + 1)
        self.single("property_names_changed", "propertyNames", old, new, at, level + 1)
        a, b = old.get("dependentSchemas", EMPTY), new.get("dependentSchemas", EMPTY)
        for name in dict.fromkeys((*b, *a)):
            place, claim = at / "dependentSchemas" / name, ("dependentSchemas", name)
            if name in a and name in b:
                self.node(a[name], b[name], place, level)
            else:
                effect = _effect(
                    widened=name not in b or self.prover.follows(old, new, claim),
                    narrowed=name not in a or self.prover.follows(new, old, claim),
                )
                where = place.new if name in b else place.old
                self.emit("dependent_schema_changed", where, a.get(name), b.get(name), effect)

    def named(self, word: str, kind: str, old: Node, new: Node, at: _Place, level: int) -> None:
        """A name that only one side has was, or is now, left to the other side's ``additionalProperties``."""
        a, b = old.get(word, EMPTY), new.get(word, EMPTY)
        for name in dict.fromkeys((*b, *a)):
            place, claim = at / word / name, (word, name)
            if name in a and name in b:
                self.node(a[name], b[name], place, level + 1)
            elif name in b:
                rest = old.get("additionalProperties", True)
                effect = _effect(
                    widened=self.prover.follows(old, new, claim), narrowed=self.prover.within(b[name], rest)
                )
                self.emit(f"{kind}_added", place.new, None, b[name], effect)
            else:
                rest = new.get("additionalProperties", True)
                effect = _effect(
                    widened=self.prover.within(a[name], rest), narrowed=self.prover.follows(new, old, claim)
                )
                self.emit(f"{kind}_removed", place.old, a[name], None, effect)

    def items(self, old: Node, new: Node, at: _Place, level: int) -> None:
        a, b = old.get("prefixItems", []), new.get("prefixItems", [])
        if len(a) != len(b):
            before, after = (
                {word: side[word] for word in ("prefixItems", "items") if word in side} for side in (old, new)
            )
            effect = self.effect(old, new, ("prefixItems", "items"))
            self.emit("items_changed", (at / ("prefixItems" if b else "items")).new, before, after, effect)
            return
        for index, (first, second) in enumerate(zip(a, b, strict=True)):
            self.node(first, second, at / "prefixItems" / index, level + 1)
        self.single("items_changed", "items", old, new, at, level + 1)

    def parts(self, keyword: str, old: Node, new: Node, at: _Place, level: int) -> None:
        a, b = dict(enumerate(old.get(keyword, []))), dict(enumerate(new.get(keyword, [])))
        if not a and not b:
            return
        kind, claim = {"allOf": "all_of", "anyOf": "any_of", "oneOf": "one_of"}[keyword], (keyword, keyword)
        for i, j in self.twins(a, b):
            self.texts_below(a.pop(i), b.pop(j), _Place(f"{at.old}/{keyword}/{i}", f"{at.new}/{keyword}/{j}"))
        if not a and not b:
            return
        before, after = old.get(keyword, []), new.get(keyword, [])
        if keyword != "allOf" and not (before and after):
            whole = f"{kind}_added" if after else f"{kind}_removed"
            place = (at / keyword).new if after else (at / keyword).old
            self.emit(whole, place, before or None, after or None, self.effect(old, new, (keyword,)))
        elif keyword == "oneOf" and not (self.prover.all_apart(before) and self.prover.all_apart(after)):
            self.emit("one_of_changed", (at / keyword).new, before, after, self.effect(old, new, (keyword,)))
        elif len(a) == len(b):
            for (i, first), (j, second) in zip(a.items(), b.items(), strict=True):
                self.node(first, second, _Place(f"{at.old}/{keyword}/{i}", f"{at.new}/{keyword}/{j}"), level)
        else:
            is_all = keyword == "allOf"
            for i, part in a.items():
                left = self.prover.within(new, part) if is_all else self.prover.follows(as_node(part), new, claim)
                effect = _effect(widened=is_all or left, narrowed=left or not is_all)
                self.emit(f"{kind}_removed", f"{at.old}/{keyword}/{i}", part, None, effect)
            for j, part in b.items():
                came = self.prover.within(old, part) if is_all else self.prover.follows(as_node(part), old, claim)
                effect = _effect(widened=came or not is_all, narrowed=is_all or came)
                self.emit(f"{kind}_added", f"{at.new}/{keyword}/{j}", None, part, effect)

    def twins(self, a: dict[int, Any], b: dict[int, Any]) -> list[tuple[int, int]]:
        """Parts that mean the same, wherever they stand."""
        free: dict[int, list[int]] = {}
        for j in reversed(b):
            free.setdefault(self.pair.form(b[j]), []).append(j)
        found = []
        for i, part in a.items():
            same = free.get(self.pair.form(part))
            if same and self.pair.same(part, b[same[-1]]):
                found.append((i, same.pop()))
        return found

    def condition(self, old: Node, new: Node, at: _Place, level: int) -> None:
        words = ("if", "then", "else")
        if all(self.alike(word, old, new) for word in words):
            return
        if "if" in old and self.alike("if", old, new) and all((word in old) == (word in new) for word in words):
            for word in words[1:]:
                if word in old:
                    self.node(old[word], new[word], at / word, level)
        else:
            self.group("condition_changed", words, old, new, at)

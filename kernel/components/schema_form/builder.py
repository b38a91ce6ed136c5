"""Builder of schema forms: the fields of a schema, from a value or from a form that was sent.

How deep and how many they may be is bounded; below that a value is written as JSON, and a form that
says more than a page sends is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.components.schema_form.fields import (
    ABSENT,
    SchemaEntry,
    SchemaField,
    Slot,
    can_be_typed,
    write_path,
)
from kernel.components.schema_form.shapes import (
    NEVER,
    ControlKind,
    ControlShape,
    ShapeReader,
    find_entry,
    find_item,
    is_of,
    is_same,
    write_json,
)
from kernel.problems import TooLarge
from unitools.checks.findings import escape_token

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_DEPTH = 6  # containers within each other
MAX_FIELDS = 250  # of one form; each sends up to three values, and a form may send a thousand
MAX_ROWS = 60
MAX_TAKEN = 2_000  # of a form that was sent: a thousand controls, and what is drawn without any


@dataclass(frozen=True, slots=True)
class Given:
    """What fields are filled with: a value (or none, and then what the schema proposes), or what was typed.

    ``at``: where in ``typed`` this field stood, which is elsewhere once a row above it is gone; ``do``: the button that was pressed.
    """

    value: Any = ABSENT
    typed: Mapping[str, str] | None = None
    at: str = ""
    do: str = ""

    @property
    def proposes(self) -> bool:
        return self.typed is None and self.value is ABSENT

    def within(self, way: str, value: Any = ABSENT) -> Given:
        return Given(value, self.typed, self.at + way, self.do) if self.typed is not None else Given(value)

    def get(self, control: str) -> str:
        return (self.typed or {}).get(f"{control}:{self.at}", "").replace("\r\n", "\n").replace("\r", "\n")

    def has(self, control: str) -> bool:
        return f"{control}:{self.at}" in (self.typed or {})

    def is_asked(self, what: str, way: str = "") -> bool:
        return self.do == f"{what}:{self.at}{way}"

    def count(self, control: str) -> int:
        text = self.get(control)
        return min(int(text), MAX_ROWS) if text.isascii() and text.isdigit() and len(text) < 6 else 0


class FormBuilder:
    """The fields of one schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._shapes, self._schema, self._count = ShapeReader(schema), schema, 0

    def propose(self) -> SchemaField:
        """What nobody has typed into: the schema's defaults stand there."""
        return self._build_root(Given())

    def fill(self, value: Any) -> SchemaField:
        return self._build_root(Given(value))

    def take(self, typed: Mapping[str, str], *, do: str = "") -> SchemaField:
        return self._build_root(Given(typed=typed, do=do))

    def _build_root(self, given: Given) -> SchemaField:
        self._count = 0
        return self._build(
            self._schema, given, path="", pointer="", label="", slot=Slot.ROOT, is_required=True, depth=0
        )

    def _build(
        self,
        schema: Any,
        given: Given,
        *,
        path: str,
        pointer: str,
        label: str,
        slot: Slot,
        is_required: bool = False,
        depth: int,
    ) -> SchemaField:
        self._count += 1
        if self._count > MAX_TAKEN:
            raise TooLarge(
                f"A form of arguments has at most {MAX_TAKEN:,} fields.",
                remedy="Write the arguments as JSON, or have the tool take fewer of them.",
            )
        shape = self._shapes.read(schema)
        # What was typed into controls is read from them.
        if depth > MAX_DEPTH or (self._count > MAX_FIELDS and given.typed is None):
            shape = ControlShape(ControlKind.ANY, shape.schema)
        made = SchemaField(path, pointer, label, shape, slot, is_required)
        if given.proposes and "default" in shape.schema:
            given = Given(shape.schema["default"])
        given_null = given.typed is None and given.value is None
        made.is_null = shape.nullable and (given_null or (given.has("x") and not given.is_asked("add")))
        if made.is_null and shape.is_container:
            made.is_present = False
            return made
        if given.typed is not None:
            self._take(made, given, depth)
        else:
            self._fill(made, ABSENT if made.is_null else given.value, depth)
        return made

    # From a value.

    def _fill(self, made: SchemaField, value: Any, depth: int) -> None:
        shape = made.shape
        given = Given(value)
        if value is not ABSENT and not self._can_hold(shape, value):
            made.is_raw, made.text = True, _write_raw(value)
            return
        match shape.kind:
            case ControlKind.ANY:
                made.text = "" if value is ABSENT else _write_raw(value)
            case ControlKind.TEXT:
                made.text = "" if value is ABSENT else value
                made.is_empty = value == ""
            case ControlKind.NUMBER | ControlKind.INTEGER:
                made.text = "" if value is ABSENT else write_json(value)
            case ControlKind.VALUES:
                places = [
                    str(place)
                    for place, (_, each) in enumerate(shape.values)
                    if value is not ABSENT and is_same(each, value)
                ]
                made.chosen = places[0] if places else ""
            case ControlKind.BRANCHES:
                self._fill_branch(made, given, depth)
            case ControlKind.ARRAY | ControlKind.OBJECT:
                made.is_present = value is not ABSENT or not made.may_be_left_out
                if made.is_present:
                    self._add_children(made, given, depth)

    def _can_hold(self, shape: ControlShape, value: Any) -> bool:
        match shape.kind:
            case ControlKind.TEXT:
                return isinstance(value, str) and can_be_typed(value)
            case ControlKind.NUMBER | ControlKind.INTEGER:
                return is_of("number", value)
            case ControlKind.VALUES:
                return any(is_same(each, value) for _, each in shape.values)
            case ControlKind.BRANCHES:
                return any(self._shapes.fits(each, value) for _, each in shape.branches)
            case ControlKind.ARRAY:
                return isinstance(value, list) and len(value) <= MAX_ROWS
            case ControlKind.OBJECT:
                return isinstance(value, dict) and self._can_hold_names(shape.schema, value)
            case ControlKind.ANY:
                return True

    def _can_hold_names(self, schema: dict[str, Any], value: dict[str, Any]) -> bool:
        others = value.keys() - schema.get("properties", {}).keys()
        if not others:
            return True
        typable = all(can_be_typed(each) and "\n" not in each for each in others)
        return find_entry(schema) is not None and typable and len(others) <= MAX_ROWS

    def _fill_branch(self, made: SchemaField, given: Given, depth: int) -> None:
        branches = made.shape.branches
        if given.value is ABSENT:
            chosen = None if made.may_be_left_out else 0
        else:
            chosen = next(place for place, (_, each) in enumerate(branches) if self._shapes.fits(each, given.value))
        if chosen is not None:
            self._choose(made, chosen, given, depth)

    def _choose(self, made: SchemaField, chosen: int, given: Given, depth: int) -> None:
        made.chosen = str(chosen)
        made.children = [
            self._build(
                made.shape.branches[chosen][1],
                given,
                path=f"{made.path}!",
                pointer=made.pointer,
                label=made.shape.branches[chosen][0],
                slot=Slot.ITEM,
                depth=depth + 1,
            )
        ]

    # From a form.

    def _take(self, made: SchemaField, given: Given, depth: int) -> None:
        shape = made.shape
        if given.has("j"):
            made.is_raw, made.text = shape.kind is not ControlKind.ANY, given.get("j")
            return
        match shape.kind:
            case ControlKind.TEXT | ControlKind.NUMBER | ControlKind.INTEGER:
                made.text, made.is_empty = given.get("t"), given.has("z") and not given.get("t")
            case ControlKind.VALUES:
                made.chosen = given.get("k")
            case ControlKind.BRANCHES:
                text = given.get("b")
                if text.isascii() and text.isdigit() and len(text) < 6 and int(text) < len(shape.branches):
                    self._choose(made, int(text), given.within("!"), depth)
                elif self._is_implied(made):
                    self._choose(made, 0, given.within("!"), depth)
            case ControlKind.ARRAY | ControlKind.OBJECT:
                if given.is_asked("null"):
                    made.is_null, made.is_present = True, False
                    return
                made.is_present = not given.is_asked("drop") and (
                    self._is_implied(made) or given.has("h") or given.is_asked("add")
                )
                if made.is_present:
                    is_new = shape.kind is ControlKind.OBJECT and given.is_asked("add")
                    self._add_children(made, Given() if is_new else given, depth)

    def _is_implied(self, made: SchemaField) -> bool:
        """Whether it is there without having been sent: what is needed and was chosen just now. A schema that names itself has no end
        of those, so they stop where a page would have stopped.
        """
        return not made.may_be_left_out and self._count <= MAX_FIELDS

    # Either.

    def _add_children(self, made: SchemaField, given: Given, depth: int) -> None:
        if made.shape.kind is ControlKind.ARRAY:
            self._add_items(made, given, depth)
            return
        schema = made.shape.schema
        known = schema.get("properties", {})
        value = given.value if isinstance(given.value, dict) else {}
        for name, each in known.items():
            if self._shapes.merge(each) == NEVER and name not in value:
                continue
            made.children.append(
                self._build(
                    each,
                    given.within(write_path(name), value.get(name, ABSENT)),
                    path=made.path + write_path(name),
                    pointer=f"{made.pointer}/{escape_token(name)}",
                    label=name,
                    slot=Slot.PROPERTY,
                    is_required=name in schema.get("required", ()),
                    depth=depth + 1,
                )
            )
        if (entry := find_entry(schema)) is not None:
            self._add_entries(made, entry, given, depth)

    def _list_rows(self, given: Given, *, mark: str, count: str, more: str) -> list[Given]:
        """Of a form, what is left of its rows and the one that was asked for."""
        rows = [given.within(f"{mark}{place}") for place in range(given.count(count))]
        kept = [each for each in rows if given.do != f"remove:{each.at}"]
        return [*kept, Given()] if given.is_asked(more) and len(kept) < MAX_ROWS else kept

    def _add_items(self, made: SchemaField, given: Given, depth: int) -> None:
        schema = made.shape.schema
        if given.typed is not None:
            rows = self._list_rows(given, mark="#", count="n", more="add")
        else:
            least = schema.get("minItems", 0) if given.value is ABSENT else 0
            given_rows = given.value if isinstance(given.value, list) else [ABSENT] * min(least, MAX_ROWS)
            rows = [Given(each) for each in given_rows]
        for place, each in enumerate(rows):
            made.children.append(
                self._build(
                    find_item(schema, place),
                    each,
                    path=f"{made.path}#{place}",
                    pointer=f"{made.pointer}/{place}",
                    label=str(place + 1),
                    slot=Slot.ITEM,
                    depth=depth + 1,
                )
            )

    def _add_entries(self, made: SchemaField, entry: Any, given: Given, depth: int) -> None:
        if given.typed is not None:
            rows = self._list_rows(given, mark="*", count="m", more="entry")
            named = [(each.get("e"), each) for each in rows]
        else:
            value = given.value if isinstance(given.value, dict) else {}
            others = [name for name in value if name not in made.shape.schema.get("properties", {})]
            named = [(name, Given(value[name])) for name in others]
        for place, (name, each) in enumerate(named):
            path = f"{made.path}*{place}"
            inner = self._build(
                entry,
                each,
                path=path,
                pointer=f"{made.pointer}/{escape_token(name)}",
                label=name,
                slot=Slot.ITEM,
                depth=depth + 1,
            )
            made.entries.append(SchemaEntry(path, name, inner))


def _write_raw(value: Any) -> str:
    return write_json(value, indent=2)

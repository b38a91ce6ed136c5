"""Schema fields: the controls of one value, filled with a value or with what somebody has typed, and what is typed there.

A value that its control cannot take stands there as JSON text, so that every value can be shown and comes back as it was. Lists grow
and shrink by buttons that send the form, so nothing here needs a script.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext, ngettext

from kernel.components.quantities import number
from kernel.components.schema_form.shapes import ControlKind, ControlShape, find_entry, find_item, write_json
from kernel.components.sentences import translate_sentence
from kernel.http.parsers import read_json
from kernel.problems import Malformed
from unitools.checks.findings import escape_token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NUMBER = re.compile(r"[-+]?(\d+)(\.\d+)?([eE][-+]?\d+)?", re.ASCII)
# What a control changes or cannot hold: a browser sends each end of a line as \r\n.
_UNTYPABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_DAY = re.compile(r"[1-9]\d{3}-\d{2}-\d{2}", re.ASCII)
LONG_TEXT = 120  # characters; a text that may be longer gets several lines
_INPUT_TYPES = {"email": "email", "idn-email": "email", "uri": "url", "iri": "url"}


class Absence(Enum):
    ABSENT = "absent"


ABSENT = Absence.ABSENT


class Slot(StrEnum):
    ROOT = "root"
    PROPERTY = "property"  # may be left out, unless it is needed
    ITEM = "item"  # stands in a list or under a name: it has a value


def _describe_range(low: float | None, high: float | None) -> str:
    said = {"low": number(low), "high": number(high)}
    if low is None:
        return "" if high is None else gettext("at most %(high)s") % said
    return gettext("at least %(low)s") % said if high is None else gettext("%(low)s to %(high)s") % said


@dataclass(slots=True)
class SchemaField:
    """``path`` names the controls, ``pointer`` the value. ``text``: what is typed; ``chosen``: the place of a value or a branch, as
    text; ``is_empty``: the empty text is meant; ``is_raw``: ``text`` is JSON, whatever the shape; ``is_present``: of a container.
    """

    path: str
    pointer: str
    label: str
    shape: ControlShape
    slot: Slot
    is_required: bool = False
    text: str = ""
    chosen: str = ""
    is_empty: bool = False
    is_null: bool = False
    is_raw: bool = False
    is_present: bool = True
    children: list[SchemaField] = field(default_factory=list)
    entries: list[SchemaEntry] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    # What the template asks.

    @property
    def id(self) -> str:
        return "f-" + sha256(self.path.encode("utf-8", "surrogatepass")).hexdigest()[:12]

    @property
    def described_by(self) -> str:
        """Ids of what is said of it, for screen readers."""
        help_id = f"{self.id}_help" if self.shape.description or self.hint or self.bounds else ""
        error_id = f"{self.id}_error" if self.errors else ""
        return f"{help_id} {error_id}".strip()

    @property
    def kind(self) -> ControlKind:
        return ControlKind.ANY if self.is_raw else self.shape.kind

    @property
    def may_be_left_out(self) -> bool:
        return self.slot is Slot.PROPERTY and not self.is_required

    @property
    def takes_entries(self) -> bool:
        return self.shape.kind is ControlKind.OBJECT and find_entry(self.shape.schema) is not None

    @property
    def shows_entries(self) -> bool:
        """Whether they are what the object is for; else they are folded away."""
        said = self.shape.schema
        return not said.get("properties") or isinstance(said.get("additionalProperties"), dict) or bool(self.entries)

    @property
    def is_long(self) -> bool:
        schema = self.shape.schema
        short = bool({"format", "pattern"} & schema.keys()) or schema.get("maxLength", LONG_TEXT + 1) <= LONG_TEXT
        return "\n" in self.text or not short

    @property
    def input_type(self) -> str:
        said = self.shape.schema.get("format", "")
        if said == "date" and (not self.text or _DAY.fullmatch(self.text)):
            return "date"
        return _INPUT_TYPES.get(said, "text") if self.text == self.text.strip() else "text"

    @property
    def may_be_empty(self) -> bool:
        """Whether an empty text and no text are two things here."""
        schema = self.shape.schema
        takes = not schema.get("minLength") and not {"format", "pattern"} & schema.keys()
        return self.slot is Slot.PROPERTY and (takes or self.is_empty)

    @property
    def takes_more(self) -> bool:
        return find_item(self.shape.schema, len(self.children)) is not False

    @property
    def options(self) -> list[tuple[str, str]]:
        named = self.shape.branches if self.shape.kind is ControlKind.BRANCHES else self.shape.values
        return [(str(place), label) for place, (label, _) in enumerate(named)]

    @property
    def is_fixed(self) -> bool:
        """Whether there is nothing to choose."""
        return self.kind is ControlKind.VALUES and len(self.shape.values) == 1 and not self.may_be_left_out

    @property
    def example(self) -> str:
        found = self.shape.schema.get("examples")
        if not isinstance(found, list) or not found:
            return ""
        return found[0] if isinstance(found[0], str) else write_json(found[0])

    @property
    def hint(self) -> str:
        """Its format and pattern, as the schema has them."""
        return " · ".join(str(self.shape.schema[key]) for key in ("format", "pattern") if key in self.shape.schema)

    @property
    def bounds(self) -> str:
        """How much or how long it may be; empty where all is allowed."""
        find = self.shape.schema.get
        shortest, longest = find("minLength"), find("maxLength")
        said = _describe_range(find("minimum"), find("maximum"))
        if shortest is None and longest is None:
            return said
        length = _describe_range(shortest, longest)
        most = int(shortest or 0) if longest is None else int(longest)
        return ngettext("%(range)s character", "%(range)s characters", most) % {"range": length}

    # What is typed.

    def read(self) -> Any:
        """The value, or ``ABSENT``. What is wrong stands in ``errors`` afterwards."""
        self.errors.clear()
        value = None if self.is_null else self._read()
        if value is ABSENT and not self.errors and not self.may_be_left_out:
            self.errors.append(
                gettext("Fill this in.") if self.kind is not ControlKind.VALUES else gettext("Choose one.")
            )
        return value

    def _read(self) -> Any:
        match self.kind:
            case ControlKind.ANY:
                return self._read_json()
            case ControlKind.TEXT:
                return self.text if self.text or self.is_empty or self.slot is not Slot.PROPERTY else ABSENT
            case ControlKind.NUMBER | ControlKind.INTEGER:
                return self._read_number()
            case ControlKind.VALUES:
                return self.shape.values[0][1] if self.is_fixed else self._find_chosen()
            case ControlKind.BRANCHES:
                return self.children[0].read() if self.children else ABSENT
            case ControlKind.ARRAY:
                return [child.read() for child in self.children] if self.is_present else ABSENT
            case ControlKind.OBJECT:
                return self._read_object() if self.is_present else ABSENT

    def _read_json(self) -> Any:
        if not self.text.strip():
            return ABSENT
        try:
            return read_json(self.text.encode("utf-8", "surrogatepass"))
        except Malformed as problem:
            self.errors.append(translate_sentence(problem.detail))
            return ABSENT

    def _read_number(self) -> Any:
        typed = self.text.strip()
        if not typed:
            return ABSENT
        found = _NUMBER.fullmatch(typed)
        if found is None or len(typed) > 400:
            self.errors.append(gettext("Write a number, such as 3 or 2.5."))
            return ABSENT
        number: int | float = float(typed) if found[2] or found[3] else int(typed)
        if number in (float("inf"), float("-inf")):
            self.errors.append(gettext("This number is too large."))
            return ABSENT
        return number

    def _find_chosen(self) -> Any:
        places = {place: value for (place, _), (_, value) in zip(self.options, self.shape.values, strict=True)}
        return places.get(self.chosen, ABSENT)

    def _read_object(self) -> dict[str, Any]:
        made = {}
        for child in self.children:
            if (value := child.read()) is not ABSENT:
                made[child.label] = value
        for entry in self.entries:
            entry.errors.clear()
            if entry.name in made:
                entry.errors.append(gettext("This name is there already."))
            made[entry.name] = entry.value.read()
        return made

    def walk(self) -> Iterator[SchemaField | SchemaEntry]:
        yield self
        for child in self.children:
            yield from child.walk()
        for entry in self.entries:
            yield entry
            yield from entry.value.walk()

    def list_wrong(self) -> list[SchemaField | SchemaEntry]:
        return [each for each in self.walk() if each.errors]

    def place_findings(self, findings: Sequence[Mapping[str, str]]) -> None:
        """Each at the field that its pointer names, or at the nearest that is around it."""
        for finding in findings:
            at: SchemaField = self
            for each in self.walk():
                if (
                    isinstance(each, SchemaField)
                    and is_within(finding["pointer"], each.pointer)
                    and len(each.pointer) >= len(at.pointer)
                ):
                    at = each
            at.errors.append(translate_sentence(finding["message"]))


@dataclass(slots=True)
class SchemaEntry:
    """A name that somebody has chosen, and what stands under it."""

    path: str
    name: str
    value: SchemaField
    errors: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.value.id + "-name"

    @property
    def label(self) -> str:
        return self.name or gettext("name")

    @property
    def example(self) -> str:
        return ""

    @property
    def described_by(self) -> str:
        return f"{self.id}_error" if self.errors else ""


def is_within(pointer: str, around: str) -> bool:
    return pointer == around or pointer.startswith(around + "/")


def write_path(name: str) -> str:
    """A property's name within a path, where # and * are places in lists and ! is what was chosen."""
    if not can_be_typed(name) or "\n" in name:
        return "/~5" + sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    marks = {"#": "~2", "*": "~3", "!": "~4"}
    return "/" + "".join(marks.get(letter, letter) for letter in escape_token(name))


def can_be_typed(text: str) -> bool:
    return _UNTYPABLE.search(text) is None

"""Argument form: the arguments of a try, as fields or as JSON; what was typed is carried from one view to the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext

from kernel.components.schema_form.builder import FormBuilder
from kernel.components.schema_form.fields import ABSENT, SchemaEntry, SchemaField
from kernel.components.schema_form.shapes import write_json
from kernel.components.sentences import translate_sentence
from kernel.http.parsers import read_json
from kernel.problems import Malformed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FIELDS, JSON = "fields", "json"


@dataclass(slots=True)
class ArgumentForm:
    """``view``: which of them is shown. ``root``: the fields; ``text``: the JSON, with its own ``errors``."""

    view: str
    root: SchemaField | None = None
    text: str = ""
    errors: list[str] = field(default_factory=list)

    def read(self) -> Any:
        """The arguments, or ``ABSENT`` where something is wrong; what, stands at the fields and in ``errors``."""
        self.errors.clear()
        if self.root is not None:
            value = self.root.read()
            return ABSENT if self.root.list_wrong() else self._check(value)
        try:
            value = read_json(self.text.encode())
        except Malformed as problem:
            self.errors.append(translate_sentence(problem.detail))
            return ABSENT
        return self._check(value)

    def _check(self, value: Any) -> Any:
        if isinstance(value, dict):
            return value
        self.errors.append(gettext("The arguments are an object: {…}."))
        return ABSENT

    def place_findings(self, findings: Sequence[Mapping[str, str]]) -> None:
        if self.root is not None:
            self.root.place_findings(findings)
            return
        self.errors += [f"{each['pointer'] or '/'}: {translate_sentence(each['message'])}" for each in findings]

    def forget_errors(self) -> None:
        self.errors.clear()
        for each in self.list_wrong():
            each.errors.clear()

    def list_wrong(self) -> list[SchemaField | SchemaEntry]:
        return self.root.list_wrong() if self.root is not None else []


def propose_arguments(schema: dict[str, Any]) -> ArgumentForm:
    return ArgumentForm(FIELDS, FormBuilder(schema).propose())


def fill_arguments(schema: dict[str, Any], value: Any) -> ArgumentForm:
    return ArgumentForm(FIELDS, FormBuilder(schema).fill(value))


def take_arguments(schema: dict[str, Any], sent: Mapping[str, str], *, do: str) -> ArgumentForm:
    if sent.get("view") == JSON:
        return ArgumentForm(JSON, text=sent.get("raw", "").replace("\r\n", "\n"))
    return ArgumentForm(FIELDS, FormBuilder(schema).take(sent, do=do))


def switch_view(form: ArgumentForm, schema: dict[str, Any], *, to: str) -> ArgumentForm:
    """The same arguments in the other view; the same form where they cannot be read, which says why."""
    if to == form.view:
        return form
    value = form.read()
    if value is ABSENT:
        return form
    return fill_arguments(schema, value) if to == FIELDS else ArgumentForm(JSON, text=write_json(value, indent=2))


def redraw_arguments(form: ArgumentForm, schema: dict[str, Any], *, do: str) -> tuple[ArgumentForm, int]:
    """What a button draws again that sends nothing, and the status of its page: 422 where the other view cannot be shown."""
    what, _, to = do.partition(":")
    if what != "view" or to not in (FIELDS, JSON):
        return form, 200
    switched = switch_view(form, schema, to=to)
    return switched, 200 if switched.view == to else 422

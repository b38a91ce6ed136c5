"""Forms of installations: set-up in a form that the tool's manifest describes.

One field for each property of the ``config_schema`` that a person can fill in (texts, numbers, choices, yes or no); a property
of any other kind, or a schema of any other shape, is filled in as JSON. What the service finds wrong is shown at its field.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from kernel.components.sentences import translate_sentence
from registry.installations import setup
from registry.installations.services import Setup

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from django.forms import BoundField

    from kernel.problems import Problem
    from registry.models import Installation, ToolVersion

SIMPLE = {"string": forms.CharField, "integer": forms.IntegerField, "number": forms.FloatField}
WHOLE = "config"
NONE_AT_ALL = "none"


class JsonArea(forms.CharField):
    """A value as JSON text; empty means that it is left out."""

    widget = forms.Textarea(attrs={"rows": 5, "class": "mono", "spellcheck": "false"})

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text.strip():
            return None
        try:
            return json.loads(text)
        except ValueError as error:
            raise forms.ValidationError(gettext("This is not valid JSON: %(why)s") % {"why": error}) from error


def _lines(text: str) -> list[str] | None:
    """One entry a line; nothing leaves it to the manifest, ``none`` alone allows none."""
    found = [line.strip() for line in text.splitlines() if line.strip()]
    return None if not found else [] if found == [NONE_AT_ALL] else found


def _shown(entries: list[str] | None) -> str:
    return "" if entries is None else "\n".join(entries) or NONE_AT_ALL


def _field_of(name: str, schema: Any, *, required: bool) -> forms.Field:
    """The field of one property."""
    said = schema if isinstance(schema, dict) else {}
    about: dict[str, Any] = {
        "label": str(said.get("title") or name),
        "help_text": str(said.get("description") or ""),
        "required": required,
    }
    if isinstance(said.get("enum"), list) and all(isinstance(each, str) for each in said["enum"]):
        choices = [("", "—"), *((each, each) for each in said["enum"])]
        return forms.ChoiceField(choices=choices, **about)
    kind = said.get("type")
    if kind == "boolean":
        choices = [("", "—"), ("true", gettext_lazy("Yes")), ("false", gettext_lazy("No"))]
        return forms.TypedChoiceField(choices=choices, coerce=lambda text: text == "true", empty_value=None, **about)
    if isinstance(kind, str) and kind in SIMPLE:
        simple: type[forms.Field] = SIMPLE[kind]
        return simple(**about)
    return JsonArea(**about)


def is_flat(schema: dict[str, Any]) -> bool:
    """Whether its properties say all that there is to fill in."""
    own = {"type", "properties", "required", "additionalProperties", "title", "description", "$schema", "$defs"}
    return bool(schema.get("properties")) and set(schema) <= own and schema.get("additionalProperties") is False


class SetupForm(forms.Form):
    """Settings of one installation, in the version that it gets now."""

    pin = forms.CharField(
        max_length=setup.MAX_PIN,
        required=False,
        label=gettext_lazy("Version range"),
        help_text=gettext_lazy(
            "Leave empty to follow the publisher. ^1.2 stays within 1.x, ~1.2.3 takes patches, 1.2.3 stays."
        ),
    )
    hosts = forms.CharField(
        required=False,
        label=gettext_lazy("Hosts that it may reach"),
        help_text=gettext_lazy(
            "One per line; *.example.com covers a family. Leave empty for what the manifest asks for; none allows no host."
        ),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    paths = forms.CharField(
        required=False,
        label=gettext_lazy("File trees that it may reach"),
        help_text=gettext_lazy(
            "One absolute path per line. Leave empty for what the manifest asks for; none allows no file."
        ),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    reason = forms.CharField(
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept as evidence."),
        widget=forms.Textarea(attrs={"rows": 2}),
    )

    def __init__(self, *args: Any, version: ToolVersion, present: Collection[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        manifest = version.view
        self.schema = manifest.config_schema
        self.declared = setup.declared_secrets(manifest)
        self.flat = self.schema is not None and is_flat(self.schema)
        for name, field in self._config_fields():
            self.fields[name] = field
        for name, said in self.declared.items():
            self.fields[f"secret:{name}"] = forms.ChoiceField(
                choices=[("", "—"), *((each, each) for each in sorted(present))],
                required=False,
                label=name,
                help_text=said.get("description", ""),
            )
        self.order_fields([*(name for name in self.fields if name != "reason"), "reason"])

    def _config_fields(self) -> Iterator[tuple[str, forms.Field]]:
        if self.schema is None:
            return
        if not self.flat:
            yield WHOLE, JsonArea(label=gettext_lazy("Configuration"), required=False)
            return
        required = self.schema.get("required", [])
        for name, said in self.schema["properties"].items():
            yield f"config:{name}", _field_of(name, said, required=name in required)

    def config_fields(self) -> list[BoundField]:
        return [self[name] for name in self.fields if name == WHOLE or name.startswith("config:")]

    def secret_fields(self) -> list[tuple[BoundField, str]]:
        """Each with the class ``needed`` when the tool cannot run without it: it can be left for later all the same."""
        return [(self[f"secret:{name}"], "needed" if said["required"] else "") for name, said in self.declared.items()]

    @staticmethod
    def initial_of(row: Installation) -> dict[str, Any]:
        """What is set now, as the fields show it."""
        values: dict[str, Any] = {"pin": row.pin, "hosts": _shown(row.hosts), "paths": _shown(row.paths)}
        values |= {f"secret:{name}": target for name, target in row.secrets.items()}
        values[WHOLE] = json.dumps(row.config, indent=2, ensure_ascii=False)
        for name, value in row.config.items():
            text = isinstance(value, str | int | float) and not isinstance(value, bool)
            values[f"config:{name}"] = value if text else json.dumps(value, indent=2, ensure_ascii=False)
        return values

    def _config(self) -> Any:
        if not self.flat:
            return self.cleaned_data.get(WHOLE) or {}
        given = {name: self.cleaned_data.get(f"config:{name}") for name in (self.schema or {})["properties"]}
        return {name: value for name, value in given.items() if value not in (None, "")}

    def values(self) -> Setup:
        data = self.cleaned_data
        found = Setup(pin=data["pin"].strip(), hosts=_lines(data["hosts"]), paths=_lines(data["paths"]))
        if self.schema is not None:
            found["config"] = self._config()
        if self.declared:
            found["secrets"] = {name: data[f"secret:{name}"] for name in self.declared if data[f"secret:{name}"]}
        return found

    def add_findings(self, problem: Problem) -> None:
        """Show each finding at the field that its pointer is about, or above the form."""
        for finding in problem.details.get("findings", []):
            parts = [part.replace("~1", "/").replace("~0", "~") for part in finding["pointer"].split("/")[1:]]
            kind = {"config": "config", "secrets": "secret"}.get(parts[0], "") if parts else ""
            candidates = [f"{kind}:{parts[1]}"] if kind and len(parts) > 1 else []
            field = next((each for each in [*candidates, *parts[:1]] if each in self.fields), None)
            self.add_error(field, translate_sentence(finding["message"]))

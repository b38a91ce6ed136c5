"""Forms of model providers: whom to ask, and with which key."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy

from kernel.components.forms import ReasonForm
from kernel.components.sentences import describe_problem, translate_sentence
from llm.provider_factory import list_foreign_kinds
from llm.providers.kinds import MODULES
from registry.installations.forms import JsonArea
from registry.model_providers.settings import LONGEST, ProviderTimeouts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.forms import BoundField

    from kernel.problems import Problem
    from registry.models import ModelProvider

TIMEOUT_WORDS = {
    "connect_s": gettext_lazy("Seconds until it takes the connection"),
    "first_event_s": gettext_lazy("Seconds until the answer begins"),
    "idle_s": gettext_lazy("Seconds of the longest pause in an answer"),
    "total_s": gettext_lazy("Seconds for the whole answer"),
}
RATES = ("requests", "tokens")
EXPERT = (*TIMEOUT_WORDS, "retries", *RATES, "options")  # most providers need none of it
_plain = {"autocomplete": "off", "spellcheck": "false"}


class ProviderForm(forms.Form):
    """``secrets``: names of those that may be chosen; None: whoever fills it in may neither choose a secret nor type a key."""

    name = forms.CharField(
        max_length=40,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("Second part of the ids of its models: lower-case letters, digits and underscores."),
        widget=forms.TextInput(attrs=_plain),
    )
    kind = forms.ChoiceField(label=gettext_lazy("Kind"), help_text=gettext_lazy("How it is spoken to."))
    address = forms.CharField(
        max_length=500,
        required=False,
        label=gettext_lazy("Address"),
        help_text=gettext_lazy("Many end with /v1. Leave empty for the usual address of the kind."),
        widget=forms.TextInput(attrs=_plain | {"inputmode": "url"}),
    )
    key = forms.CharField(
        max_length=16_384,
        strip=False,
        required=False,
        label=gettext_lazy("Key"),
        help_text=gettext_lazy("Encrypted at once and never shown again. Leave empty to keep the one that is stored."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    secret = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Secret that holds the key"),
        help_text=gettext_lazy("Leave empty for one of its own. A key typed above becomes the value of this secret."),
    )
    data_classes = forms.CharField(
        required=False,
        label=gettext_lazy("Classes of data that it may be sent"),
        help_text=gettext_lazy("Separated by spaces: personal, payment, health, … Other data are masked or refused."),
        widget=forms.TextInput(attrs=_plain),
    )
    retries = forms.IntegerField(required=False, label=gettext_lazy("Retries"), help_text=gettext_lazy("Usually 2."))
    options = JsonArea(
        required=False,
        label=gettext_lazy("Options of its kind"),
        help_text=gettext_lazy("A JSON object; most need none."),
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
    )
    reason = ReasonForm.base_fields["reason"]

    def __init__(
        self, *args: Any, row: ModelProvider | None = None, secrets: Iterable[str] | None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        usual = asdict(ProviderTimeouts())
        for name, label in TIMEOUT_WORDS.items():
            self.fields[name] = forms.FloatField(
                required=False,
                label=label,
                help_text=gettext_lazy("Usually %(usual)g, at most %(most)g.")
                % {"usual": usual[name], "most": LONGEST[name]},
            )
        for name, label in (
            ("requests", gettext_lazy("Requests of the key in a minute")),
            ("tokens", gettext_lazy("Tokens of the key in a minute")),
        ):
            self.fields[name] = forms.IntegerField(
                required=False, label=label, help_text=gettext_lazy("Leave empty where nobody counts.")
            )
        kinds = {*MODULES, *list_foreign_kinds(), *([row.kind] if row else [])}
        self.fields["kind"].choices = [(each, each) for each in sorted(kinds)]  # type: ignore[attr-defined]
        if row is not None:
            del self.fields["name"]
        if secrets is None:
            del self.fields["key"], self.fields["secret"]
        else:
            self.fields["secret"].choices = [("", "—"), *((each, each) for each in secrets)]  # type: ignore[attr-defined]
        first = (
            "name",
            "kind",
            "address",
            "key",
            "secret",
            "data_classes",
            *TIMEOUT_WORDS,
            "retries",
            *RATES,
            "options",
        )
        self.order_fields([name for name in (*first, "reason") if name in self.fields])

    def plain_fields(self) -> list[BoundField]:
        return [self[name] for name in self.fields if name not in EXPERT and name != "reason"]

    def expert_fields(self) -> list[BoundField]:
        return [self[name] for name in self.fields if name in EXPERT]

    def has_expert_errors(self) -> bool:
        """What is wrong must not be folded away."""
        return any(name in EXPERT for name in self.errors)

    @staticmethod
    def initial_of(row: ModelProvider) -> dict[str, Any]:
        """What is set now, as the fields show it; what is usual is left empty."""
        settings = row.settings
        options = settings.get("options")
        return {
            "kind": row.kind,
            "address": row.address,
            "secret": row.secret,
            "data_classes": " ".join(row.data_classes),
            "retries": settings.get("retries"),
            "options": json.dumps(options, indent=2, ensure_ascii=False) if options else "",
            **settings.get("timeouts", {}),
            **settings.get("rates", {}),
        }

    def terms(self) -> dict[str, Any]:
        """As the services take them."""
        data = self.cleaned_data
        timeouts = {name: data[name] for name in TIMEOUT_WORDS if data[name] is not None}
        rates = {name: data[name] for name in RATES if data[name] is not None}
        said = {"timeouts": timeouts, "rates": rates, "options": data["options"] or {}}
        settings: dict[str, Any] = {name: value for name, value in said.items() if value}
        if data["retries"] is not None:
            settings["retries"] = data["retries"]
        found = {
            "kind": data["kind"],
            "address": data["address"],
            "settings": settings,
            "data_classes": data["data_classes"].replace(",", " ").split(),
        }
        return found | ({"secret": data["secret"]} if "secret" in self.fields else {})

    def add_findings(self, problem: Problem) -> None:
        """Show each finding at the field that its pointer ends with or begins with, or above the form."""
        findings = problem.details.get("findings", [])
        for finding in findings:
            parts = finding["pointer"].strip("/").split("/")
            named = (each for each in (*reversed(parts[:3]), parts[0]) if each in self.fields)
            self.add_error(next(named, None), translate_sentence(finding["message"]))
        if not findings:
            self.add_error("key" if problem.reason == "PROVIDER.AUTH" else None, describe_problem(problem))

"""Forms of policies: what people fill in.

The usual rules have a form each; all make rules as data, which the draft's text then shows.
"""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import count
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from access.grants.forms import EXPRESSION
from access.models import ConsentMode
from access.policies.clauses import LEVELS, LIMITS
from access.redaction.detectors import ALL, KINDS
from unitools import expressions

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

MICROS = 1_000_000
MIB = 1024 * 1024
WEEKDAYS = [
    ("1", gettext_lazy("Monday")),
    ("2", gettext_lazy("Tuesday")),
    ("3", gettext_lazy("Wednesday")),
    ("4", gettext_lazy("Thursday")),
    ("5", gettext_lazy("Friday")),
    ("6", gettext_lazy("Saturday")),
    ("7", gettext_lazy("Sunday")),
]


class DraftForm(forms.Form):
    """A whole policy as text."""

    text = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 28, "class": "mono", "spellcheck": "false"}),
        label=gettext_lazy("Policy"),
        help_text=gettext_lazy("JSON or YAML. Every layer must permit a call; any rule that forbids wins."),
        strip=False,
    )
    note = forms.CharField(
        required=False,
        max_length=1000,
        label=gettext_lazy("Note"),
        help_text=gettext_lazy("What the change is for. Whoever publishes it reads this."),
    )


class NewDraftForm(DraftForm):
    layer = forms.ChoiceField(
        choices=[("tenant", gettext_lazy("This tenant")), ("hub", gettext_lazy("The whole hub"))],
        label=gettext_lazy("Applies to"),
    )
    field_order = ("layer", "text", "note")

    def __init__(self, *args: Any, may_hub: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_hub:
            del self.fields["layer"]


class PreviewForm(forms.Form):
    calls = forms.IntegerField(min_value=1, max_value=100_000, initial=1000, label=gettext_lazy("Last calls"))


class PublishForm(forms.Form):
    """``denies_all``: the draft would deny every call, which takes a second look. ``seen``: the digest of what the page shows."""

    seen = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)
    reason = forms.CharField(
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=gettext_lazy("Note"),
        help_text=gettext_lazy("Why you agree; kept as evidence with these figures."),
    )
    acknowledged = forms.BooleanField(
        label=gettext_lazy("I have seen that it denies every call, and mean it."),
        error_messages={"required": gettext_lazy("Tick this to publish a policy that denies every call.")},
    )

    def __init__(self, *args: Any, denies_all: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not denies_all:
            del self.fields["acknowledged"]


class RuleForm(forms.Form):
    """What every rule has. :meth:`rules` makes the rules that the form stands for."""

    title: _StrPromise
    effect = ""

    tools = forms.CharField(
        max_length=500,
        initial="*",
        label=gettext_lazy("Tools"),
        widget=EXPRESSION,
        help_text=gettext_lazy("For example commerce.*, tag:beta or effect:Write & ~safety:Low; * for all."),
    )
    agent = forms.CharField(
        max_length=200,
        required=False,
        label=gettext_lazy("Agent"),
        help_text=gettext_lazy("The agent's name. Leave empty for all agents."),
        widget=forms.TextInput(attrs={"list": "agents", "autocomplete": "off"}),
    )
    id = forms.SlugField(
        max_length=60,
        required=False,
        label=gettext_lazy("Name of the rule"),
        help_text=gettext_lazy("The rule's name in verdicts. Leave empty to generate one."),
    )
    note = forms.CharField(max_length=500, required=False, label=gettext_lazy("Note"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = [name for name in self.fields if name not in RuleForm.base_fields]
        self.order_fields(["tools", *own, "agent", "id", "note"])

    def clean_tools(self) -> str:
        text: str = self.cleaned_data["tools"].strip()
        try:
            expressions.parse(text)
        except expressions.ExpressionError as error:
            raise forms.ValidationError(str(error)) from error
        return text

    def clean_id(self) -> str:
        return str(self.cleaned_data["id"]).lower()

    def when(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.cleaned_data["tools"] != "*":
            found["tool"] = {"matches": self.cleaned_data["tools"]}
        if self.cleaned_data["agent"]:
            found["agent_name"] = {"equals": self.cleaned_data["agent"]}
        return found

    def says(self) -> dict[str, Any]:
        return {}

    def conditions(self) -> list[dict[str, Any]]:
        """One ``when`` for each rule."""
        return [self.when()]

    def rules(self, taken: set[str]) -> list[dict[str, Any]]:
        """With ids that are not ``taken``."""
        found = []
        for when in self.conditions():
            rule = {"id": self._free(taken), "effect": self.effect, "when": when, **self.says()}
            if self.cleaned_data["note"]:
                rule["note"] = self.cleaned_data["note"]
            taken.add(rule["id"])
            found.append(rule)
        return found

    def _free(self, taken: set[str]) -> str:
        """The name that was given, or one with a number."""
        given = self.cleaned_data["id"]
        if given and given not in taken:
            return str(given)
        name = given or self.effect
        return next(found for number in count(1) if (found := f"{name}-{number}") not in taken)


class AllowForm(RuleForm):
    title, effect = gettext_lazy("Allow tools"), "permit"


class DenyForm(RuleForm):
    """Names no tool beforehand: a form that was sent too early would deny all of them."""

    title, effect = gettext_lazy("Deny tools"), "forbid"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tools"].initial = ""


class CeilingForm(RuleForm):
    title, effect = gettext_lazy("Limit what calls may reach and use"), "ceiling"

    capabilities = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
        label=gettext_lazy("Capabilities"),
        help_text=gettext_lazy("JSON, as in a manifest. Leave empty for no limit; {} allows nothing."),
    )
    timeout_ms = forms.IntegerField(required=False, min_value=1, label=gettext_lazy("Milliseconds per call"))
    memory_mib = forms.IntegerField(required=False, min_value=32, label=gettext_lazy("MiB of memory"))
    max_bytes_in = forms.IntegerField(required=False, min_value=2, label=gettext_lazy("Bytes of arguments"))
    max_bytes_out = forms.IntegerField(required=False, min_value=2, label=gettext_lazy("Bytes of output"))

    def clean_capabilities(self) -> Any:
        text = self.cleaned_data["capabilities"].strip()
        if not text:
            return None
        try:
            return json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise forms.ValidationError(gettext("This is not valid JSON: %(why)s") % {"why": error}) from error

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if not self.errors and data.get("capabilities") is None and not self._limits():
            raise forms.ValidationError(gettext("Enter capabilities or at least one limit."))
        return data

    def _limits(self) -> dict[str, int]:
        data = dict(self.cleaned_data)
        if data.get("memory_mib"):
            data["memory_bytes"] = data["memory_mib"] * MIB
        return {name: data[name] for name in LIMITS if data.get(name)}

    def says(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.cleaned_data["capabilities"] is not None:
            found["capabilities"] = self.cleaned_data["capabilities"]
        if limits := self._limits():
            found["limits"] = limits
        return found


class ConsentForm(RuleForm):
    title, effect = gettext_lazy("Ask a person to agree"), "consent"

    mode = forms.ChoiceField(
        choices=[
            (ConsentMode.ONCE, gettext_lazy("For each call")),
            (ConsentMode.PERIOD, gettext_lazy("For a time")),
            (ConsentMode.STANDING, gettext_lazy("Until it is revoked")),
        ],
        label=gettext_lazy("Validity of the consent"),
    )
    hours = forms.IntegerField(
        min_value=1,
        max_value=8760,
        initial=24,
        label=gettext_lazy("Hours"),
        help_text=gettext_lazy("How long the consent is valid."),
    )

    def says(self) -> dict[str, Any]:
        return {"consent": {"mode": self.cleaned_data["mode"], "validity_s": self.cleaned_data["hours"] * 3600}}


class ObligationForm(RuleForm):
    title, effect = gettext_lazy("Change what callers get to see"), "oblige"

    action = forms.ChoiceField(
        choices=[
            ("mask", gettext_lazy("Mask: keep the shape")),
            ("redact", gettext_lazy("Redact: replace with a placeholder")),
            ("watermark", gettext_lazy("Watermark: name the call")),
        ],
        label=gettext_lazy("How"),
    )
    detector = forms.ChoiceField(
        required=False,
        choices=[("", gettext_lazy("Only the place below")), *((kind, kind) for kind in (ALL, *KINDS))],
        label=gettext_lazy("What"),
        help_text=gettext_lazy("Wherever it is found."),
    )
    pointer = forms.CharField(
        required=False,
        max_length=400,
        label=gettext_lazy("Place"),
        help_text=gettext_lazy(
            "Instead of the above, a JSON pointer into the output: /customer/email; * matches every entry."
        ),
    )
    on_failure = forms.ChoiceField(
        choices=[
            ("deny", gettext_lazy("The call fails")),
            ("degrade", gettext_lazy("The output is withheld")),
        ],
        label=gettext_lazy("If it cannot be done"),
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        marks = data.get("action") == "watermark"
        places = bool(data.get("detector")) + bool(data.get("pointer"))
        if not self.errors and not marks and places != 1:
            raise forms.ValidationError(gettext("Choose either what or where."))
        if not self.errors and marks and data.get("detector"):
            raise forms.ValidationError(gettext("A watermark can have a place, but no detector."))
        return data

    def says(self) -> dict[str, Any]:
        data = self.cleaned_data
        made = {name: data[name] for name in ("action", "detector", "pointer", "on_failure") if data[name]}
        return {"obligations": [made]}


class PriceForm(RuleForm):
    title, effect = gettext_lazy("Charge for calls"), "price"

    amount = forms.DecimalField(
        min_value=Decimal(0),
        max_value=Decimal(1_000_000),
        decimal_places=6,
        label=gettext_lazy("Price per call"),
    )

    def name_currency(self, currency: str) -> None:
        self.fields["amount"].help_text = gettext("In %(currency)s.") % {"currency": currency}

    def says(self) -> dict[str, Any]:
        return {"amount_micros": int(self.cleaned_data["amount"] * MICROS)}


class HoursForm(RuleForm):
    title, effect = gettext_lazy("Allow only at certain times"), "forbid"

    first = forms.IntegerField(
        min_value=0, max_value=23, initial=8, label=gettext_lazy("From hour"), help_text=gettext_lazy("In UTC.")
    )
    last = forms.IntegerField(min_value=0, max_value=23, initial=17, label=gettext_lazy("Until the end of hour"))
    weekdays = forms.MultipleChoiceField(
        choices=WEEKDAYS,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("On"),
        help_text=gettext_lazy("Leave all unticked for every day."),
    )

    def conditions(self) -> list[dict[str, Any]]:
        """Forbidden outside of the hours; and, when only some days are meant, on the others."""
        first, last = self.cleaned_data["first"], self.cleaned_data["last"]
        within = {"not": {"at_least": first, "at_most": last}}
        over_night = {"at_least": last + 1, "at_most": first - 1}
        found = []
        if (first, last) != (0, 23) and first != last + 1:
            found.append(self.when() | {"hour": within if first <= last else over_night})
        days = sorted(int(day) for day in self.cleaned_data["weekdays"])
        if days and len(days) < len(WEEKDAYS):
            found.append(self.when() | {"weekday": {"not": {"in": days}}})
        return found

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if not self.errors and not self.conditions():
            raise forms.ValidationError(gettext("This covers all hours of all days, so no rule is needed."))
        return data


class ModelForm(RuleForm):
    title, effect = gettext_lazy("Only compatible models"), "forbid"

    unnamed = forms.BooleanField(
        required=False,
        label=gettext_lazy("Let calls through that name no model"),
        help_text=gettext_lazy("Otherwise a call must name a model that the tool’s manifest lists."),
    )

    def conditions(self) -> list[dict[str, Any]]:
        """What is unknown is forbidden, unless the rule asks first whether it is known."""
        asked: dict[str, Any] = {"equals": False}
        return [self.when() | {"model_compatible": {"has": True} | asked if self.cleaned_data["unnamed"] else asked}]


class IsolationForm(RuleForm):
    title, effect = gettext_lazy("Isolate calls"), "isolation"

    level = forms.ChoiceField(
        required=False,
        choices=[("", gettext_lazy("As other rules require")), *((level, level) for level in LEVELS[1:])],
        label=gettext_lazy("Level"),
        help_text=gettext_lazy("The minimum level, the weakest first."),
    )
    untrusted = forms.BooleanField(
        required=False,
        label=gettext_lazy("Treat the code as untrusted"),
        help_text=gettext_lazy(
            "It runs only in the runtime reserved for untrusted code, and only where every isolation layer is verified."
        ),
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if not self.errors and not self.says():
            raise forms.ValidationError(gettext("Choose a level, or tick the box."))
        return data

    def says(self) -> dict[str, Any]:
        return {name: value for name in ("level", "untrusted") if (value := self.cleaned_data[name])}


RULE_FORMS: dict[str, type[RuleForm]] = {
    "allow": AllowForm,
    "deny": DenyForm,
    "ceiling": CeilingForm,
    "consent": ConsentForm,
    "obligation": ObligationForm,
    "price": PriceForm,
    "hours": HoursForm,
    "model": ModelForm,
    "isolation": IsolationForm,
}

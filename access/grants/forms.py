"""Forms of grants and consents: what people fill in."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from access.models import Agent, ConsentMode
from kernel.components.forms import ReasonForm
from kernel.components.sentences import translate_sentence
from kernel.http.parsers import read_json
from kernel.problems import Malformed
from registry.tools.expression_matches import find_argument_types

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from django.utils.functional import _StrPromise

    from access.models import Consent, GrantRequest
    from kernel.principal import Principal

Mode = tuple[str, "str | _StrPromise"]
MODES: list[Mode] = [
    (ConsentMode.ONCE, gettext_lazy("For this one call, with exactly these arguments")),
    (ConsentMode.PERIOD, gettext_lazy("For a time")),
    (ConsentMode.STANDING, gettext_lazy("Until it is revoked")),
]
UNITS = {60: gettext_lazy("minutes"), 3600: gettext_lazy("hours"), 86400: gettext_lazy("days")}


# What is offered: registry/templatetags/expressions.py.
EXPRESSION = forms.TextInput(attrs={"list": "tool-expressions", "autocomplete": "off", "spellcheck": "false"})


ARGUMENT_OPS = [
    ("equals", gettext_lazy("exactly")),
    ("in", gettext_lazy("one of")),
    ("at_most", gettext_lazy("at most")),
    ("at_least", gettext_lazy("at least")),
    ("starts_with", gettext_lazy("a text that begins with")),
]


class JsonField(forms.CharField):
    """A JSON document as text; empty means None. Read as strictly as the body of a request."""

    widget = forms.Textarea(attrs={"rows": 4, "spellcheck": "false"})

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text.strip():
            return None
        try:
            return read_json(text.encode("utf-8", "replace"))
        except Malformed as wrong:
            raise forms.ValidationError(translate_sentence(wrong.detail)) from wrong

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _read_scalar(text: str, *, is_text: bool) -> Any:
    """A number, true, false, null or a quoted text as JSON has them; all else is a text. ``is_text``: all but a quoted text too."""
    try:
        value = read_json(text.encode("utf-8", "replace"))
    except Malformed:
        return text
    if isinstance(value, str):
        return value
    return text if is_text or isinstance(value, (dict, list)) else value


class TermsForm(forms.Form):
    """What a grant says. ``tenant_id``: whose tools it may name."""

    tenant_id: UUID
    tools = forms.CharField(
        max_length=500,
        label=gettext_lazy("Tools"),
        widget=EXPRESSION,
        help_text=gettext_lazy(
            "An id (group.package.name), a family (group.*), tag:x, effect:Read, safety:Low, domain:net or *, combined with & | ~ ( )."
        ),
    )
    argument = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Only where this argument"),
        widget=forms.TextInput(attrs={"list": "arguments", "autocomplete": "off", "placeholder": "/currency"}),
    )
    argument_op = forms.ChoiceField(required=False, choices=ARGUMENT_OPS, label=gettext_lazy("is"))
    argument_value = forms.CharField(
        required=False,
        max_length=400,
        label=gettext_lazy("this value"),
        help_text=gettext_lazy("With commas between several."),
    )
    conditions = JsonField(
        required=False,
        label=gettext_lazy("Conditions on the arguments"),
        help_text=gettext_lazy(
            'For example [{"pointer": "/currency", "op": "equals", "value": "EUR"}]. All must be met.'
        ),
    )
    scopes = JsonField(
        required=False,
        label=gettext_lazy("Scopes"),
        help_text=gettext_lazy(
            'For example [{"resource": "soul:fs:/data", "action": "read"}]. Empty means all that the manifest asks for.'
        ),
    )
    capabilities = JsonField(
        required=False,
        label=gettext_lazy("Capability bounds"),
        help_text=gettext_lazy("As in a manifest. Empty means whatever the manifest asks for and the policy allows."),
    )

    def terms(self) -> dict[str, Any]:
        """As services take them."""
        said = self.cleaned_data
        return {
            "tools": said["tools"],
            "capabilities": said["capabilities"],
            "scopes": said["scopes"],
            "conditions": [*(said["conditions"] or []), *self._read_argument()],
        }

    def _read_argument(self) -> list[dict[str, Any]]:
        """The condition that was chosen rather than written."""
        said = self.cleaned_data
        if not said["argument"]:
            return []
        pointer = said["argument"] if said["argument"].startswith("/") else f"/{said['argument']}"
        value, op = said["argument_value"].strip(), said["argument_op"] or "equals"
        types = find_argument_types(said["tools"], pointer, tenant_id=self.tenant_id)
        is_text = op == "starts_with" or types == {"string"}
        read = partial(_read_scalar, is_text=is_text)
        chosen = [read(each.strip()) for each in value.split(",")] if op == "in" else read(value)
        return [{"pointer": pointer, "op": op, "value": chosen}]

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or self.cleaned_data
        if said.get("argument") and not said.get("argument_value", "").strip():
            self.add_error("argument_value", gettext("Say which value the argument must have."))
        if said.get("argument_value") and not said.get("argument") and "argument" not in self.errors:
            self.add_error("argument", gettext("Choose the argument that must have this value."))
        return said

    def clean_conditions(self) -> Any:
        value = self.cleaned_data["conditions"]
        if value is not None and not isinstance(value, list):
            raise forms.ValidationError(gettext("Conditions must be a list."))
        return value


class _LimitsForm(forms.Form):
    calls_limit = forms.IntegerField(
        min_value=1,
        max_value=2_000_000_000,
        required=False,
        label=gettext_lazy("Calls per day"),
        help_text=gettext_lazy("Empty means no limit."),
    )
    expires_at = forms.DateTimeField(
        required=False,
        label=gettext_lazy("Expires"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    reason = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Why the agent gets this grant; kept as evidence."),
    )


def selectable_agents(by: Principal) -> Any:
    return Agent.objects.filter(tenant_id=by.tenant_id, disabled_at=None).order_by("name")


class GrantForm(_LimitsForm, TermsForm):
    agent = forms.ModelChoiceField(Agent.objects.none(), required=False, label=gettext_lazy("Agent"))
    may_delegate = forms.TypedChoiceField(
        choices=[
            (0, gettext_lazy("No")),
            (1, gettext_lazy("One level")),
            (2, gettext_lazy("Two levels")),
            (3, gettext_lazy("Three levels")),
        ],
        coerce=int,
        empty_value="0",
        required=False,
        label=gettext_lazy("May be delegated"),
        help_text=gettext_lazy(
            "How many agents in a row may pass it on. "
            "A delegated grant never allows more than this one, and ends with it."
        ),
    )
    every_agent = forms.BooleanField(required=False, label=gettext_lazy("Every agent of the tenant, also new ones"))
    field_order = ("agent", "every_agent", "tools", "calls_limit", "expires_at", "may_delegate", "reason")

    def __init__(self, *args: Any, by: Principal, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tenant_id = by.tenant_id
        self.fields["agent"].queryset = selectable_agents(by)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or self.cleaned_data
        if "agent" in said and (said["agent"] is None) != bool(said.get("every_agent")):
            message = gettext("Choose one agent, or every agent of the tenant.")
            self.add_error("agent", forms.ValidationError(message))
        return said


class AnswerForm(_LimitsForm, TermsForm):
    """The grant for a request, filled in as it was asked for."""

    field_order = ("tools", "calls_limit", "expires_at", "reason")

    def __init__(self, *args: Any, asked: GrantRequest, **kwargs: Any) -> None:
        terms = {name: getattr(asked, name) for name in ("tools", "scopes", "capabilities")}
        kwargs["initial"] = terms | {"conditions": asked.conditions or None}
        super().__init__(*args, **kwargs)
        self.tenant_id = asked.tenant_id


class AskForm(TermsForm):
    agent = forms.ModelChoiceField(Agent.objects.none(), label=gettext_lazy("Agent"))
    purpose = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=500,
        label=gettext_lazy("Purpose"),
        help_text=gettext_lazy("What the agent needs the tools for. Whoever decides reads this."),
    )
    field_order = ("agent", "tools", "purpose")

    def __init__(self, *args: Any, by: Principal, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tenant_id = by.tenant_id
        self.fields["agent"].queryset = selectable_agents(by)  # type: ignore[attr-defined]


class ExtendForm(ReasonForm):
    expires_at = forms.DateTimeField(
        required=False,
        label=gettext_lazy("Expires"),
        help_text=gettext_lazy("Empty means never."),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    field_order = ("expires_at", "reason")


class ManyForm(ReasonForm):
    """Revoking several at once takes a typed word, since it stops many calls."""

    confirm = forms.CharField(label=gettext_lazy("Type to confirm"))

    def __init__(self, *args: Any, count: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.word = f"revoke {count}"
        self.fields["confirm"].help_text = gettext("Type “%(word)s”.") % {"word": self.word}
        self.fields["confirm"].widget.attrs |= {"autocomplete": "off", "placeholder": self.word}

    def clean_confirm(self) -> str:
        typed: str = self.cleaned_data["confirm"]
        if typed.strip() != self.word:
            raise forms.ValidationError(gettext("Type “%(word)s”.") % {"word": self.word})
        return typed


def largest_unit(seconds: int) -> int:
    """The largest unit in which it is a whole number; minutes for what is none."""
    return next((unit for unit in sorted(UNITS, reverse=True) if seconds % unit == 0), 60)


class DecisionForm(ReasonForm):
    """Approve or deny a request, or revoke what was approved.

    Nothing is chosen beforehand: each way to approve is a button of its own, which says how far the approval goes.
    """

    decision = forms.ChoiceField(
        choices=[
            ("approve", gettext_lazy("Approve")),
            ("deny", gettext_lazy("Deny")),
            ("revoke", gettext_lazy("Revoke")),
        ],
        widget=forms.HiddenInput,
        required=False,
    )
    mode = forms.ChoiceField(choices=MODES, required=False, widget=forms.HiddenInput)
    acknowledged = forms.CharField(max_length=40, required=False, widget=forms.HiddenInput)
    amount = forms.IntegerField(min_value=1, max_value=1_000_000, required=False, label=gettext_lazy("How long"))
    unit = forms.ChoiceField(choices=list(UNITS.items()), required=False, label=gettext_lazy("Unit"))
    field_order = ("reason", "amount", "unit")

    def __init__(
        self, *args: Any, consent: Consent | None = None, modes: Iterable[str] = (), failed: str = "", **kwargs: Any
    ) -> None:
        """``failed``: the dry run that must be acknowledged with an approval."""
        self.failed = failed
        if consent is not None:
            unit = largest_unit(consent.validity_s)
            kwargs["initial"] = {"amount": consent.validity_s // unit, "unit": unit}
        super().__init__(*args, **kwargs)
        if consent is not None:
            self.fields["mode"].choices = [mode for mode in MODES if mode[0] in set(modes)]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or self.cleaned_data
        if said.get("mode") and not said.get("decision"):
            said["decision"] = "approve"
        if "mode" in said and said.get("decision", "") in ("", "approve") and not said["mode"]:
            self.add_error(None, gettext("Choose how far the approval goes, or deny."))
        return said

    def read_attenuation(self) -> dict[str, Any]:
        """What the approval narrows, as the service takes it."""
        said = self.cleaned_data
        if said["decision"] != "approve":
            return {}
        chosen: dict[str, Any] = {"mode": said["mode"], "acknowledged": said["acknowledged"]}
        if said["amount"] and said["mode"] != ConsentMode.STANDING:
            chosen["validity_s"] = said["amount"] * int(said["unit"] or 60)
        return chosen

"""Forms of the playground: how it is set up, and what a person writes to models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django import forms
from django.utils.translation import gettext, gettext_lazy

from access.budgets.forms import AmountField, to_stored_amount
from access.models import Dimension
from invocations.agent_runs.limits import MAX_COST_MICROS, MAX_STEPS, RunLimits
from invocations.playground.services import AGENT_NAME, MAX_TEXT, MAX_TOKENS, MessageDraft
from kernel.components.forms import ReasonForm

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from invocations.playground.offers import PlaygroundOffer

STEPS = 8
MAX_OUTPUT_TOKENS = 1_000_000


class SetUpForm(ReasonForm):
    """The agent that people talk through, what it may call, and what it may spend in a day."""

    name = forms.CharField(
        max_length=80,
        initial=AGENT_NAME,
        label=gettext_lazy("Name of the agent"),
        help_text=gettext_lazy("A new agent, for the playground alone. It has no key."),
    )
    models = forms.MultipleChoiceField(
        choices=[], label=gettext_lazy("Models"), widget=forms.CheckboxSelectMultiple, required=True
    )
    tools = forms.CharField(
        max_length=500,
        required=False,
        label=gettext_lazy("Tools"),
        help_text=gettext_lazy(
            "An id (group.package.name), a family (group.*), tag:x, effect:Read, safety:Low, domain:net or *, combined with & | ~ ( )."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    money = AmountField(
        label=gettext_lazy("Money a day"),
        help_text=gettext_lazy("In the currency of the tenant, for everybody together."),
    )
    calls = forms.IntegerField(
        min_value=1,
        max_value=2_000_000_000,
        required=False,
        label=gettext_lazy("Calls a day"),
        help_text=gettext_lazy("Of models and tools. Empty means no limit."),
    )
    field_order = ("name", "models", "tools", "money", "calls", "reason")

    def __init__(self, *args: Any, models: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["models"].choices = [(each, each) for each in models]  # type: ignore[attr-defined]

    def clean_money(self) -> int:
        return _to_micros(self.cleaned_data["money"])


def _to_micros(typed: Decimal) -> int:
    try:
        return to_stored_amount(typed, Dimension.MONEY)
    except ValueError as wrong:
        raise forms.ValidationError(str(wrong)) from wrong


class MessageForm(forms.Form):
    """A message, whom it goes to and how far its answer may go. What may be chosen is what the agent may call now."""

    token = forms.UUIDField(widget=forms.HiddenInput)
    text = forms.CharField(
        max_length=MAX_TEXT,
        label=gettext_lazy("Message"),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    model = forms.ChoiceField(choices=[], label=gettext_lazy("Model"))
    second_model = forms.ChoiceField(
        choices=[],
        required=False,
        label=gettext_lazy("Compare with"),
    )
    tools = forms.MultipleChoiceField(
        choices=[], required=False, label=gettext_lazy("Tools"), widget=forms.CheckboxSelectMultiple
    )
    expression = forms.CharField(
        max_length=500,
        required=False,
        label=gettext_lazy("Tools by expression"),
        help_text=gettext_lazy("Such as commerce.* or tag:search & effect:Read, in addition to those that are ticked."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    max_tokens = forms.IntegerField(
        min_value=1, max_value=MAX_OUTPUT_TOKENS, initial=MAX_TOKENS, label=gettext_lazy("Tokens of an answer")
    )
    steps = forms.IntegerField(
        min_value=1, max_value=MAX_STEPS, initial=STEPS, label=gettext_lazy("How often the model is asked")
    )
    cost = AmountField(
        required=False,
        label=gettext_lazy("Cost of a run"),
        help_text=gettext_lazy("Empty: as much as the budgets have."),
    )
    purpose = forms.CharField(
        max_length=300,
        required=False,
        label=gettext_lazy("Purpose"),
        help_text=gettext_lazy("Whoever decides on a call that waits reads this."),
    )

    def __init__(self, *args: Any, offer: PlaygroundOffer, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["token"] = uuid4()
        models = [(each.id, each.id) for each in offer.models]
        self.fields["model"].choices = models  # type: ignore[attr-defined]
        self.fields["second_model"].choices = [("", gettext("no other model")), *models]  # type: ignore[attr-defined]
        self.fields["tools"].choices = [(each.id, each.id) for each in offer.tools]  # type: ignore[attr-defined]

    def clean_cost(self) -> int | None:
        typed = self.cleaned_data["cost"]
        if typed is None:
            return None
        micros = _to_micros(typed)
        if micros > MAX_COST_MICROS:
            raise forms.ValidationError(gettext("This amount is too large."))
        return micros

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or self.cleaned_data
        if said.get("second_model") and said["second_model"] == said.get("model"):
            self.add_error("second_model", gettext("Choose another model than the first."))
        return said

    def build_draft(self) -> MessageDraft:
        said = self.cleaned_data
        expression = said["expression"].strip()
        return MessageDraft(
            text=said["text"],
            models=tuple(each for each in (said["model"], said["second_model"]) if each),
            tools=(*said["tools"], *([expression] if expression else [])),
            max_tokens=said["max_tokens"],
            limits=RunLimits(steps=said["steps"], cost_micros=said["cost"]),
            purpose=said["purpose"],
        )

"""Forms of budgets: what people fill in. Money is typed in the currency and kept in its millionths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from access.budgets.lines import MILLIONTHS
from access.budgets.services import DAY_S, MAX_AMOUNT, MAX_TOOL
from access.models import Agent, BudgetScope, Dimension, Grant

if TYPE_CHECKING:
    from decimal import Decimal

    from kernel.principal import Principal

SCOPE_WORDS = {
    BudgetScope.TENANT: gettext_lazy("The whole tenant"),
    BudgetScope.AGENT: gettext_lazy("One agent"),
    BudgetScope.TOOL: gettext_lazy("One tool"),
    BudgetScope.GRANT: gettext_lazy("One grant"),
}
DIMENSION_WORDS = {
    Dimension.CALLS: gettext_lazy("Calls"),
    Dimension.BYTES_IN: gettext_lazy("Bytes of arguments"),
    Dimension.BYTES_OUT: gettext_lazy("Bytes of results"),
    Dimension.CPU_MS: gettext_lazy("CPU time, in milliseconds"),
    Dimension.TOKENS: gettext_lazy("Tokens of models"),
    Dimension.MONEY: gettext_lazy("Money, by the prices of the policy"),
    Dimension.CONCURRENCY: gettext_lazy("Calls at the same time"),
    Dimension.RATE: gettext_lazy("Rate: calls, spread evenly"),
}
WINDOWS = [
    (60, gettext_lazy("Minute")),
    (3600, gettext_lazy("Hour")),
    (DAY_S, gettext_lazy("Day")),
    (7 * DAY_S, gettext_lazy("Week")),
    (30 * DAY_S, gettext_lazy("30 days")),
]


NAMED_BY = (BudgetScope.AGENT, BudgetScope.TOOL, BudgetScope.GRANT)  # have a field of that name


class AmountField(forms.DecimalField):
    """Whole numbers; with decimals for money, which :func:`to_stored_amount` turns into millionths."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=0, max_digits=16, decimal_places=6, **kwargs)


def to_stored_amount(typed: Decimal, dimension: str) -> int:
    """What is kept. ``ValueError`` for a part of a call, a byte or a millisecond."""
    amount = typed * MILLIONTHS if dimension == Dimension.MONEY else typed
    if amount != amount.to_integral_value():
        raise ValueError(gettext("Only amounts of money can have decimals."))
    if amount > MAX_AMOUNT:
        raise ValueError(gettext("This amount is too large."))
    return int(amount)


class BudgetForm(forms.Form):
    scope = forms.ChoiceField(choices=list(SCOPE_WORDS.items()), label=gettext_lazy("For"))
    agent = forms.ModelChoiceField(Agent.objects.none(), required=False, label=gettext_lazy("Agent"))
    tool = forms.CharField(
        max_length=MAX_TOOL,
        required=False,
        label=gettext_lazy("Tool"),
        help_text=gettext_lazy("The budget covers all its callers."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "list": "tools"}),
    )
    grant = forms.ModelChoiceField(Grant.objects.none(), required=False, label=gettext_lazy("Grant"))
    dimension = forms.ChoiceField(choices=list(DIMENSION_WORDS.items()), label=gettext_lazy("What is limited"))
    amount = AmountField(label=gettext_lazy("At most"))
    window_s = forms.TypedChoiceField(
        choices=WINDOWS,
        coerce=int,
        initial=DAY_S,
        label=gettext_lazy("Window"),
        help_text=gettext_lazy(
            "Minutes, hours and days follow the UTC clock; weeks begin on Thursdays. Calls at the same time have no window."
        ),
    )
    reason = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept as evidence."),
        widget=forms.Textarea(attrs={"rows": 2}),
    )

    def __init__(self, *args: Any, by: Principal, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents: Any = self.fields["agent"]
        grants: Any = self.fields["grant"]
        agents.queryset = Agent.objects.filter(tenant_id=by.tenant_id).order_by("name")
        grants.queryset = Grant.objects.visible_to(by).filter(revoked_at=None).select_related("agent").order_by("-pk")
        grants.label_from_instance = lambda grant: f"{grant.wire_id}: {grant.tools}"

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if "amount" in data and data.get("dimension"):
            try:
                data["amount"] = to_stored_amount(data["amount"], data["dimension"])
            except ValueError as error:
                self.add_error("amount", str(error))
        if data.get("dimension") == Dimension.CONCURRENCY:
            data["window_s"] = 0
        scope = data.get("scope", "")
        for name in NAMED_BY:  # what another choice had left in its field does not count
            if name != scope and name in data:
                data[name] = "" if name == "tool" else None
        if scope in NAMED_BY and not data.get(scope) and scope not in self.errors:
            self.add_error(scope, gettext("Choose for which one."))
        return data

    def terms(self) -> dict[str, Any]:
        """As :func:`access.budgets.services.set_budget` takes them."""
        agent, grant = self.cleaned_data["agent"], self.cleaned_data["grant"]
        rest = {name: value for name, value in self.cleaned_data.items() if name not in ("agent", "grant")}
        return rest | {"agent_id": agent.pk if agent else None, "grant_id": grant.pk if grant else None}


class AmountForm(forms.Form):
    """How much, and why. ``dimension`` is that of the budget."""

    amount = AmountField(label=gettext_lazy("Amount"))
    reason = forms.CharField(
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept as evidence."),
        widget=forms.Textarea(attrs={"rows": 2}),
    )

    def __init__(self, *args: Any, dimension: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dimension = dimension
        self.fields["amount"].help_text = DIMENSION_WORDS[Dimension(dimension)]

    def clean_amount(self) -> int:
        try:
            return to_stored_amount(self.cleaned_data["amount"], self.dimension)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

"""What do people fill in about grants and consents?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy

from access.models import Agent

if TYPE_CHECKING:
    from toolhub.kernel.principal import Principal


class GrantForm(forms.Form):
    agent = forms.ModelChoiceField(Agent.objects.none(), label=gettext_lazy("Agent"))
    tools = forms.CharField(
        max_length=128,
        label=gettext_lazy("Tools"),
        help_text=gettext_lazy("One tool (group.package.name), a family (group.package.* or group.*), or * for all."),
    )
    calls_limit = forms.IntegerField(
        min_value=1,
        max_value=2_000_000_000,
        required=False,
        label=gettext_lazy("Calls a day"),
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

    def __init__(self, *args: Any, by: Principal, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents = Agent.objects.filter(tenant_id=by.tenant_id, disabled_at=None).order_by("name")
        self.fields["agent"].queryset = agents  # type: ignore[attr-defined]


class ReasonForm(forms.Form):
    reason = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept as evidence."),
    )


class DecisionForm(ReasonForm):
    decision = forms.ChoiceField(
        choices=[
            ("approve", gettext_lazy("Approve")),
            ("deny", gettext_lazy("Deny")),
            ("revoke", gettext_lazy("Revoke")),
        ],
        widget=forms.HiddenInput,
    )

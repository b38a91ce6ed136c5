"""Forms of access: people, agents, keys and identity providers."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth import get_user_model
from django.core.validators import MaxValueValidator
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from access.agents.services import MAX_OVERLAP, OVERLAP
from access.models import Agent
from access.roles import AGENT_SCOPES, ON_AGENT, ON_TOOL, PERMISSIONS, SCOPES, Role
from kernel.components.labels import MARKS

if TYPE_CHECKING:
    from kernel.principal import Principal


def _choices(labels: dict[str, str]) -> list[tuple[str, Any]]:
    return [(name, format_lazy("{}{}{}", name, MARKS["colon"], gettext_lazy(label))) for name, label in labels.items()]


SCOPE_CHOICES = _choices(SCOPES)


class AgentForm(forms.Form):
    name = forms.CharField(
        max_length=80, label=gettext_lazy("Name"), help_text=gettext_lazy("The name that evidence uses.")
    )


class KeyForm(forms.Form):
    name = forms.CharField(
        max_length=80, required=False, label=gettext_lazy("Used for"), help_text=gettext_lazy("For example “staging”.")
    )
    scopes = forms.MultipleChoiceField(
        choices=SCOPE_CHOICES,
        widget=forms.CheckboxSelectMultiple,
        initial=AGENT_SCOPES,
        label=gettext_lazy("Scopes"),
    )
    days = forms.IntegerField(min_value=1, max_value=366, initial=90, label=gettext_lazy("Valid for, in days"))
    networks = forms.CharField(
        required=False,
        max_length=2000,
        label=gettext_lazy("Networks"),
        help_text=gettext_lazy(
            "The networks it may be used from, for example 192.0.2.0/24, separated by spaces. Leave empty to allow any."
        ),
    )

    def networks_given(self) -> list[str]:
        return str(self.cleaned_data["networks"]).replace(",", " ").split()


class HubOwnerForm(forms.Form):
    username = forms.CharField(
        max_length=150,
        label=gettext_lazy("User name"),
        help_text=gettext_lazy("For an existing user of any tenant."),
    )
    action = forms.ChoiceField(choices=[("give", ""), ("take", "")], widget=forms.HiddenInput)

    def clean_username(self) -> Any:
        user = get_user_model().objects.filter(username=self.cleaned_data["username"], is_active=True).first()
        if user is None:
            raise forms.ValidationError(gettext("There is no user with this name."))
        return user


class RotationForm(forms.Form):
    overlap_days = forms.IntegerField(
        min_value=0,
        max_value=MAX_OVERLAP.days,
        initial=OVERLAP.days,
        label=gettext_lazy("Overlap, in days"),
        help_text=gettext_lazy("The new key works at once; the old one keeps working for this long."),
    )

    def overlap(self) -> timedelta:
        return timedelta(days=self.cleaned_data["overlap_days"])


class PersonForm(forms.Form):
    username = forms.CharField(
        max_length=150,
        label=gettext_lazy("User name"),
        help_text=gettext_lazy("Or the user name of an existing user."),
    )
    name = forms.CharField(max_length=150, required=False, label=gettext_lazy("Name"))
    email = forms.EmailField(required=False, max_length=254, label=gettext_lazy("E-mail"))
    roles = forms.MultipleChoiceField(
        choices=Role.choices, widget=forms.CheckboxSelectMultiple, label=gettext_lazy("Roles")
    )


class RolesForm(forms.Form):
    roles = forms.MultipleChoiceField(
        choices=Role.choices,
        widget=forms.CheckboxSelectMultiple,
        required=False,
        label=gettext_lazy("Roles"),
        help_text=gettext_lazy("Without any role, the person is removed from the tenant."),
    )
    reason = forms.CharField(max_length=500, label=gettext_lazy("Reason"), help_text=gettext_lazy("Kept as evidence."))


class PermissionForm(forms.Form):
    permission = forms.ChoiceField(choices=_choices(PERMISSIONS), label=gettext_lazy("Permission"))
    action = forms.ChoiceField(
        choices=[("give", gettext_lazy("Give")), ("take", gettext_lazy("Take"))], widget=forms.HiddenInput
    )


class ExceptionForm(PermissionForm):
    permission = forms.ChoiceField(choices=_choices({**ON_TOOL, **ON_AGENT}), label=gettext_lazy("Permission"))
    thing = forms.CharField(
        max_length=128,
        label=gettext_lazy("Tool or agent"),
        help_text=gettext_lazy("The id of a tool that this tenant publishes, or the name of one of its agents."),
    )
    field_order = ("permission", "thing", "action")


class JwksField(forms.CharField):
    """A key set as JSON text; empty is None."""

    widget = forms.Textarea(attrs={"rows": 6, "spellcheck": "false"})

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(gettext("This is not valid JSON.")) from error

    def prepare_value(self, value: Any) -> Any:
        return json.dumps(value, indent=1) if isinstance(value, dict) else value


class IssuerKeysForm(forms.Form):
    audience = forms.CharField(
        max_length=300,
        label=gettext_lazy("Audience"),
        help_text=gettext_lazy("The value of the aud claim in its tokens. An audience belongs to one tenant only."),
    )
    jwks_url = forms.CharField(
        max_length=500,
        required=False,
        label=gettext_lazy("Key set URL"),
        help_text=gettext_lazy("The provider’s jwks_uri, at a public https address."),
    )
    jwks = JwksField(
        required=False,
        max_length=50_000,
        label=gettext_lazy("Or the keys"),
        help_text=gettext_lazy("A JSON Web Key Set, for providers that do not publish one."),
    )


class IssuerForm(IssuerKeysForm):
    issuer = forms.CharField(
        max_length=300,
        label=gettext_lazy("Issuer"),
        help_text=gettext_lazy("Exactly as its tokens name it (the iss claim)."),
    )
    field_order = ("issuer", "audience", "jwks_url", "jwks")


class SubjectForm(forms.Form):
    subject = forms.CharField(
        max_length=300,
        label=pgettext_lazy("of a token", "Subject"),
        help_text=gettext_lazy("The sub claim of the tokens."),
    )
    agent = forms.ModelChoiceField(Agent.objects.none(), label=gettext_lazy("Agent"))
    scopes = forms.MultipleChoiceField(
        choices=SCOPE_CHOICES,
        widget=forms.CheckboxSelectMultiple,
        initial=AGENT_SCOPES,
        label=gettext_lazy("Scopes"),
        help_text=gettext_lazy("The maximum. A token that names scopes gets only those it names."),
    )

    def __init__(self, *args: Any, by: Principal, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents = Agent.objects.filter(tenant_id=by.tenant_id, disabled_at=None).order_by("name")
        self.fields["agent"].queryset = agents  # type: ignore[attr-defined]


class AssertionRuleForm(forms.Form):
    agent = forms.ModelChoiceField(
        Agent.objects.none(),
        label=gettext_lazy("Agent"),
        help_text=gettext_lazy("Programs of all its people act as it."),
    )
    scopes = forms.MultipleChoiceField(
        choices=_choices({name: SCOPES[name] for name in AGENT_SCOPES}),
        widget=forms.CheckboxSelectMultiple,
        initial=AGENT_SCOPES,
        label=gettext_lazy("Scopes"),
        help_text=gettext_lazy("The maximum. The provider and the program may ask for less."),
    )
    tools = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=20_000,
        label=gettext_lazy("Tools"),
        help_text=gettext_lazy("Their ids, one a line. Leave empty for all that the agent is given, now and later."),
    )
    token_minutes = forms.IntegerField(
        min_value=1,
        label=gettext_lazy("A token lasts, in minutes"),
        help_text=gettext_lazy("For so long a program goes on when the provider would say no."),
    )

    def __init__(self, *args: Any, by: Principal, longest: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["agent"].queryset = Agent.objects.filter(tenant_id=by.tenant_id, disabled_at=None).order_by("name")
        fields["token_minutes"].initial = longest
        fields["token_minutes"].max_value = longest
        fields["token_minutes"].validators.append(MaxValueValidator(longest))
        fields["token_minutes"].widget.attrs["max"] = longest

    def clean_tools(self) -> list[str] | None:
        return str(self.cleaned_data["tools"]).split() or None


class IdentityForm(forms.Form):
    identity = forms.UUIDField(widget=forms.HiddenInput)


class TenantForm(forms.Form):
    name = forms.CharField(max_length=80, label=gettext_lazy("Name"))
    slug = forms.SlugField(
        max_length=40, label=gettext_lazy("Short name"), help_text=gettext_lazy("Letters, digits and hyphens.")
    )

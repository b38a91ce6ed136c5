"""Forms of server accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from access.models import Agent


class AgentsForm(forms.Form):
    """Which agents may use an account on their own word; those that ask and those that may are offered."""

    agents = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, label=gettext_lazy("Agents that may use it by themselves")
    )

    def __init__(self, data: Any, *, offered: Iterable[Agent], initial: dict[str, Any] | None = None) -> None:
        super().__init__(data, initial=initial)
        field: Any = self.fields["agents"]
        field.choices = [(each.wire_id, each.name) for each in offered]


class AccountClientForm(forms.Form):
    resource = forms.ChoiceField(label=gettext_lazy("Server"))
    client_id = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Id of the hub there"),
        help_text=gettext_lazy("Empty: the hub finds its way by itself, by its own document or by registering."),
    )
    client_secret = forms.CharField(
        required=False,
        max_length=4096,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        label=gettext_lazy("Secret of the hub there"),
        help_text=gettext_lazy("Leave it out where the server gave none."),
    )

    def __init__(self, data: Any, *, resources: Iterable[str]) -> None:
        super().__init__(data)
        field: Any = self.fields["resource"]
        field.choices = [(each, each) for each in resources]

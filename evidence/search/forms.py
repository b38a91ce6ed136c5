"""Forms of search: facts chosen by day and by who did it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from access.models import Agent, Membership
from evidence.search.scope import FactScope
from kernel.ids import encode_user

if TYPE_CHECKING:
    from kernel.principal import Principal

DAY = {"type": "date"}


class ScopeForm(forms.Form):
    """What :class:`FactScope` takes, but for the person for whom an agent called."""

    since = forms.DateField(
        required=False, label=gettext_lazy("From day"), widget=forms.DateInput(attrs=DAY, format="%Y-%m-%d")
    )
    until = forms.DateField(
        required=False, label=gettext_lazy("To day"), widget=forms.DateInput(attrs=DAY, format="%Y-%m-%d")
    )
    who = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Who did it"),
        help_text=gettext_lazy("A person or an agent, and all that is on record of what they did."),
    )

    def __init__(self, *args: Any, by: Principal, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["who"].choices = list_actors(by)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or self.cleaned_data
        if said.get("since") and said.get("until") and said["since"] > said["until"]:
            self.add_error("until", gettext("The last day is before the first."))
        return said

    def read_scope(self) -> FactScope:
        said = self.cleaned_data
        return FactScope(said["since"], said["until"], said["who"], said.get("user", ""))


def list_actors(by: Principal) -> list[Any]:
    """Choices of a form: the people and the agents of the tenant."""
    members = Membership.objects.filter(tenant_id=by.tenant_id).select_related("user").order_by("user__username")
    users = {row.user_id: row.user for row in members}
    people = [(encode_user(pk), user.get_full_name() or user.get_username()) for pk, user in users.items()]
    agents = [(agent.wire_id, agent.name) for agent in Agent.objects.filter(tenant_id=by.tenant_id).order_by("name")]
    return [("", gettext("Anybody")), (gettext("People"), people), (gettext("Agents"), agents)]

"""Forms of halts: what to stop, chosen by name, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from access.halts.services import MAX_REASON
from access.models import Agent, Reach

if TYPE_CHECKING:
    from access.models import Tenant
    from kernel.principal import Principal

REACH_WORDS = {
    Reach.TOOL: gettext_lazy("One tool"),
    Reach.VERSION: gettext_lazy("One version of a tool"),
    Reach.AGENT: gettext_lazy("One agent"),
    Reach.TENANT: gettext_lazy("The whole tenant"),
    Reach.HUB: gettext_lazy("The whole hub"),
}
HUB_WORD = "everything"
TARGETS = (Reach.TOOL, Reach.VERSION, Reach.AGENT)  # have a field of that name
PICKER = {"autocomplete": "off", "spellcheck": "false"}


class HaltForm(forms.Form):
    """What stops many calls is confirmed by a typed name; the server checks it."""

    reach = forms.ChoiceField(label=gettext_lazy("What to stop"))
    tool = forms.CharField(
        max_length=128, required=False, label=gettext_lazy("Tool"), widget=forms.TextInput(PICKER | {"list": "tools"})
    )
    version = forms.CharField(
        max_length=128,
        required=False,
        label=gettext_lazy("Version"),
        help_text=gettext_lazy("Its id, tvn_…; choose it by the name of its tool."),
        widget=forms.TextInput(PICKER | {"list": "versions"}),
    )
    agent = forms.ChoiceField(required=False, label=gettext_lazy("Agent"))
    reason = forms.CharField(
        max_length=MAX_REASON,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept as evidence, and shown to every caller who is refused."),
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    confirm = forms.CharField(max_length=128, required=False, label=gettext_lazy("Confirm"))

    def __init__(self, *args: Any, by: Principal, tenant: Tenant, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        reach: Any = self.fields["reach"]
        agent: Any = self.fields["agent"]
        reach.choices = [
            (each, word) for each, word in REACH_WORDS.items() if each != Reach.HUB or by.may("hub.manage")
        ]
        agents = Agent.objects.filter(tenant_id=by.tenant_id, disabled_at=None).order_by("name")
        agent.choices = [("", "—"), *((each.wire_id, each.name) for each in agents)]
        self.words = {str(Reach.TENANT): tenant.slug, str(Reach.HUB): HUB_WORD}
        help_text = gettext("To stop the whole tenant, type %(tenant)s.") % {"tenant": tenant.slug}
        if by.may("hub.manage"):
            help_text += " " + gettext("To stop the whole hub, type %(word)s.") % {"word": HUB_WORD}
        self.fields["confirm"].help_text = help_text
        self.fields["confirm"].widget.attrs |= {"autocomplete": "off"}

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        reach = data.get("reach", "")
        if reach in TARGETS and not data.get(reach) and reach not in self.errors:
            self.add_error(reach, gettext("Choose what to stop."))
        word = self.words.get(reach)
        if word is not None and data.get("confirm", "").strip() != word:
            self.add_error("confirm", gettext("Type %(word)s to confirm.") % {"word": word})
        return data

    def read_target(self) -> str:
        """Empty for a tenant and for the hub."""
        reach = self.cleaned_data["reach"]
        return str(self.cleaned_data[reach]) if reach in TARGETS else ""

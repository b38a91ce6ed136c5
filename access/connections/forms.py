"""Forms of connections. What may be chosen is what the program asked for and the agent may do: less is possible, more is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext, gettext_lazy, ngettext

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.http import QueryDict

    from access.connections.connection_rules import ConnectionBounds
    from access.models import Agent

USUAL_DAYS = 30
ALL, THESE = "all", "these"
# The scopes of an agent, in the words of the page; those of the reference (access.roles.SCOPES) are for who writes programs.
SCOPE_WORDS = {
    "tools:read": gettext_lazy("See which tools there are"),
    "invocations:create": gettext_lazy("Use the tools"),
    "invocations:read": gettext_lazy(
        "Read what the agent’s calls returned, also those of other programs, and cancel them"
    ),
    "consents:request": gettext_lazy("Ask people to agree to a call"),
    "grants:request": gettext_lazy("Ask for tools that the agent has not been given"),
}
REACHES = [
    (ALL, gettext_lazy("All tools that the agent is given, now and later")),
    (THESE, gettext_lazy("Only the tools that I choose")),
]


def describe_once(seconds: int) -> str:
    minutes = round(seconds / 60)
    if minutes % 60:
        text = ngettext(
            "It ends after %(n)d minute and must ask again.", "It ends after %(n)d minutes and must ask again.", minutes
        )
        return text % {"n": minutes}
    hours = minutes // 60
    return ngettext(
        "It ends after %(n)d hour and must ask again.", "It ends after %(n)d hours and must ask again.", hours
    ) % {"n": hours}


def read_choices(data: QueryDict) -> dict[str, Any]:
    """What was chosen so far, for the form once more; empty where nothing was."""
    if "reach" not in data:
        return {}
    kept = {name: data[name] for name in ("agent", "reach", "days") if name in data}
    return kept | {"scopes": data.getlist("scopes"), "once": "once" in data}


class ConnectionForm(forms.Form):
    agent = forms.ChoiceField(label=gettext_lazy("Acts as the agent"))
    reach = forms.ChoiceField(
        choices=REACHES,
        widget=forms.RadioSelect,
        initial=ALL,
        label=gettext_lazy("Tools"),
        help_text=gettext_lazy("This limits what it calls. Reading goes by the agent: see “What it may do”."),
    )
    tools = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, label=gettext_lazy("Chosen tools")
    )
    scopes = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, label=gettext_lazy("What it may do"))
    days = forms.IntegerField(min_value=1, label=gettext_lazy("For how many days"))
    once = forms.BooleanField(
        required=False,
        label=gettext_lazy("Only this once"),
    )

    def __init__(
        self,
        data: Any,
        *,
        agents: Iterable[Agent],
        scopes: Iterable[str],
        tools: Iterable[str],
        bounds: ConnectionBounds,
        initial: dict[str, Any] | None = None,
    ) -> None:
        longest, asked = bounds.days, list(scopes)
        super().__init__(data, initial={"days": min(USUAL_DAYS, longest), "scopes": asked} | (initial or {}))
        fields: Any = self.fields
        fields["agent"].choices = [(each.wire_id, each.name) for each in agents]
        fields["scopes"].choices = [(each, SCOPE_WORDS[each]) for each in asked]
        fields["once"].help_text = describe_once(bounds.token_s)
        fields["tools"].choices = [(each, each) for each in tools]
        fields["days"].max_value = longest
        fields["days"].validators.append(MaxValueValidator(longest))
        fields["days"].widget.attrs["max"] = longest

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or {}
        if said.get("reach") == THESE and not said.get("tools") and "tools" not in self.errors:
            self.add_error("tools", gettext("Choose at least one tool."))
        if said.get("reach") == ALL and said.get("tools"):
            self.add_error(
                "reach", gettext("You have ticked tools. Choose “Only the tools that I choose”, or untick them.")
            )
        return said

    @property
    def chosen_tools(self) -> list[str] | None:
        return None if self.cleaned_data["reach"] == ALL else list(self.cleaned_data["tools"])


class ConnectionRuleForm(forms.Form):
    """Empty fields leave it to the hub."""

    days = forms.IntegerField(
        required=False,
        label=gettext_lazy("Days until a connection ends"),
        help_text=gettext_lazy("A person may choose fewer."),
    )
    idle_days = forms.IntegerField(
        required=False,
        label=gettext_lazy("Days until an unused connection ends"),
        help_text=gettext_lazy("A program that fetches no newer token for so long has to ask a person again."),
    )
    token_minutes = forms.IntegerField(
        required=False,
        label=gettext_lazy("Minutes that an access token is good for"),
        help_text=gettext_lazy("Some programs fetch a newer one only when a person clicks."),
    )
    sign_in_minutes = forms.IntegerField(
        required=False,
        label=gettext_lazy("Minutes until a person signs in again"),
        help_text=gettext_lazy(
            "For whoever lets a program use tools that change things: their sign-in must be this recent. Empty: any sign-in is enough."
        ),
    )

    def __init__(self, *args: Any, limits: Mapping[str, tuple[int, int]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        for name, (least, most) in limits.items():
            fields[name].validators += [MinValueValidator(least), MaxValueValidator(most)]
            fields[name].widget.attrs |= {"min": least, "max": most}

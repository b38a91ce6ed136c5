"""Forms of tries: as whom and how a tool is tried, beside its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django import forms
from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from invocations.tries.callers import TryCaller


class TryForm(forms.Form):
    """``confirmed`` is asked for, and shown, only where a call takes effect."""

    token = forms.UUIDField(widget=forms.HiddenInput)
    caller = forms.ChoiceField(
        choices=[],
        label=gettext_lazy("As the agent"),
        help_text=gettext_lazy("Its grants, budgets and policies decide, as for each of its calls."),
    )
    mode = forms.ChoiceField(
        choices=[
            ("dry", gettext_lazy("Dry run: it is asked to change nothing")),
            ("real", gettext_lazy("For real")),
        ],
        initial="dry",
        label=gettext_lazy("How"),
        widget=forms.RadioSelect,
    )
    purpose = forms.CharField(
        max_length=300,
        required=False,
        label=gettext_lazy("Purpose"),
        help_text=gettext_lazy("Kept as evidence. Whoever decides on a call that waits reads this."),
    )
    confirmed = forms.CharField(
        max_length=128,
        required=False,
        label=gettext_lazy("Type the tool’s id"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, callers: Sequence[TryCaller], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["token"] = uuid4()
        self.fields["caller"].choices = [(each.id, each.label) for each in callers]  # type: ignore[attr-defined]

    @property
    def is_dry(self) -> bool:
        return str(self["mode"].value()) != "real"

"""Forms of verifications: what people fill in to have a range verified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy

from evidence.log.origins import CHECKPOINTS, HUB

if TYPE_CHECKING:
    from kernel.principal import Principal


class RangeForm(forms.Form):
    name = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Log"),
        choices=[
            ("", gettext_lazy("This tenant's")),
            (CHECKPOINTS, gettext_lazy("The log of checkpoints, which all tenants share")),
            (HUB, gettext_lazy("The hub's own")),
        ],
    )
    start = forms.IntegerField(min_value=0, initial=0, label=gettext_lazy("From leaf"))
    stop = forms.IntegerField(
        min_value=1,
        required=False,
        label=gettext_lazy("Up to leaf (excluded)"),
        help_text=gettext_lazy("Empty: the end of the log."),
    )

    def __init__(self, *args: Any, by: Principal, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not by.may("hub.manage"):
            del self.fields["name"]

    def asked(self) -> dict[str, Any]:
        """As :func:`~evidence.integrity.services.ask_verification` takes it."""
        return dict(self.cleaned_data)

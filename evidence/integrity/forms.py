"""Forms of verifications: what people fill in to have a range verified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from evidence.log.origins import CHECKPOINTS, HUB
from evidence.search.forms import ScopeForm

if TYPE_CHECKING:
    from kernel.principal import Principal


class RangeForm(ScopeForm):
    """Which leaves are verified: those of some days or of somebody, which are in the tenant's own log, or a range of any log."""

    name = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Log"),
        choices=[
            ("", gettext_lazy("This tenant's")),
            (CHECKPOINTS, gettext_lazy("The log of checkpoints, which all tenants share")),
            (HUB, gettext_lazy("The hub's own")),
        ],
    )
    start = forms.IntegerField(min_value=0, initial=0, required=False, label=gettext_lazy("From leaf"))
    stop = forms.IntegerField(
        min_value=1,
        required=False,
        label=gettext_lazy("Up to leaf (excluded)"),
        help_text=gettext_lazy("Empty: the end of the log."),
    )

    def __init__(self, *args: Any, by: Principal, **kwargs: Any) -> None:
        super().__init__(*args, by=by, **kwargs)
        self.tenant_id = by.tenant_id
        if not by.may("hub.manage"):
            del self.fields["name"]

    def clean(self) -> dict[str, Any]:
        said = super().clean()
        if self.errors:
            return said
        if not (said["since"] or said["until"] or said["who"]):
            if said["start"] is None:
                self.add_error("start", self.fields["start"].error_messages["required"])
            return said
        if said.get("name") or said["start"] or said["stop"] is not None:
            raise forms.ValidationError(gettext("Choose days and people, or leaves of the log, but not both."))
        leaves = self.read_scope().find_leaves(self.tenant_id)
        if leaves is None:
            raise forms.ValidationError(gettext("No fact of these days and of who you chose is in the log."))
        said["start"], said["stop"] = leaves
        return said

    def asked(self) -> dict[str, Any]:
        """As :func:`~evidence.integrity.services.ask_verification` takes it."""
        said = self.cleaned_data
        return {"start": said["start"] or 0, "stop": said["stop"], "name": said.get("name", "")}

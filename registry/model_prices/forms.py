"""Forms of model prices: one price from a day on, or a whole document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from kernel.components.forms import ReasonForm, add_problem
from kernel.components.sentences import translate_sentence

if TYPE_CHECKING:
    from kernel.problems import Problem

AMOUNT_WORDS = {
    "input": gettext_lazy("Input, a million tokens"),
    "cached": gettext_lazy("Input that was read before, a million tokens"),
    "output": gettext_lazy("Output, a million tokens"),
    "image": gettext_lazy("Picture"),
    "audio_second": gettext_lazy("Second of sound"),
    "request": gettext_lazy("Request"),
}
_plain = {"autocomplete": "off", "spellcheck": "false"}


class DayPriceForm(forms.Form):
    """What one model costs from a day on, in US dollars. Amounts are texts, for a price is kept as it was written."""

    provider = forms.CharField(
        max_length=40,
        label=gettext_lazy("Provider"),
        help_text=gettext_lazy("Your name of it."),
        widget=forms.TextInput(attrs=_plain),
    )
    model = forms.CharField(
        max_length=200, label=gettext_lazy("Name at the provider"), widget=forms.TextInput(attrs=_plain)
    )
    effective_from = forms.CharField(
        max_length=10,
        label=gettext_lazy("In force from"),
        help_text=gettext_lazy("A day in UTC; a later one waits until then."),
        widget=forms.DateInput(attrs={"type": "date"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in AMOUNT_WORDS.items():
            self.fields[name] = forms.CharField(
                max_length=26,
                required=name == "input",
                label=label,
                help_text=gettext_lazy("US dollars, such as 2.10"),
                widget=forms.TextInput(attrs=_plain | {"inputmode": "decimal"}),
            )
        self.fields["reason"] = ReasonForm().fields["reason"]

    def price(self) -> dict[str, str]:
        """As a document has it; what is empty is left out."""
        names = ("provider", "model", "effective_from", *AMOUNT_WORDS)
        return {name: self.cleaned_data[name].strip() for name in names if self.cleaned_data[name].strip()}

    def add_findings(self, problem: Problem) -> None:
        """Show what is wrong with this price at its field; what is wrong with another one, above the form."""
        for finding in problem.details.get("findings", []):
            start, _, name = finding["pointer"].rpartition("/")
            self.add_error(
                name if start == "/prices/0" and name in self.fields else None, translate_sentence(finding["message"])
            )
        if not problem.details.get("findings"):
            add_problem(self, problem)


class DocumentForm(forms.Form):
    """All prices and rates as JSON."""

    document = forms.CharField(
        label=gettext_lazy("All prices"),
        help_text=gettext_lazy("The document is whole: what it leaves out is no longer set."),
        strip=False,
        widget=forms.Textarea(attrs={"rows": 22, "class": "mono", "spellcheck": "false"}),
    )
    reason = ReasonForm.base_fields["reason"]

    def clean_document(self) -> Any:
        try:
            return json.loads(self.cleaned_data["document"])
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(gettext("This is not valid JSON: %(why)s") % {"why": error}) from error

    def add_findings(self, problem: Problem) -> None:
        """Each with its place in the document."""
        for finding in problem.details.get("findings", []):
            self.add_error("document", f"{finding['pointer']} {translate_sentence(finding['message'])}".strip())
        if not problem.details.get("findings"):
            add_problem(self, problem)

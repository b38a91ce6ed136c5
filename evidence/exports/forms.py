"""Forms of exports: what people fill in to export evidence."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy

from evidence.models import ExportFormat
from evidence.search.forms import ScopeForm
from evidence.search.language import fix_days, parse

FORMAT_WORDS = {
    ExportFormat.JSONL: gettext_lazy("JSON lines: the exact text of each fact, with its hash"),
    ExportFormat.CSV: gettext_lazy("CSV, for spreadsheets"),
    ExportFormat.BUNDLE: gettext_lazy("Signed bundle: verifiable without this hub"),
}


class ExportForm(ScopeForm):
    """``opens`` and ``reason`` are there for who may reveal values. The range of leaves is for those who compare logs."""

    format = forms.ChoiceField(
        choices=list(FORMAT_WORDS.items()),
        initial=ExportFormat.BUNDLE,
        widget=forms.RadioSelect,
        label=gettext_lazy("Format"),
    )
    user = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("For whom an agent called"),
        help_text=gettext_lazy("The id of that person, as the agent names them."),
    )
    query = forms.CharField(
        required=False,
        max_length=1000,
        label=gettext_lazy("Search"),
        help_text=gettext_lazy(
            "As in the search for facts. Where all of this is empty, every fact is exported; "
            "only then can a bundle prove that none is missing."
        ),
    )
    start = forms.IntegerField(min_value=0, initial=0, required=False, label=gettext_lazy("From leaf"))
    stop = forms.IntegerField(
        min_value=0,
        required=False,
        label=gettext_lazy("Up to leaf (excluded)"),
        help_text=gettext_lazy("Leave empty for everything sealed so far."),
    )
    older = forms.IntegerField(
        min_value=1,
        required=False,
        label=gettext_lazy("Size of an older checkpoint"),
        help_text=gettext_lazy("A bundle then proves that the log continues it."),
    )
    opens = forms.BooleanField(
        required=False,
        label=gettext_lazy("With the values of calls"),
        help_text=gettext_lazy("For bundles only. Each value included is recorded as revealed by you."),
    )
    reason = forms.CharField(
        required=False,
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 2}),
        label=gettext_lazy("Reason for revealing values"),
        help_text=gettext_lazy("At least 10 characters. Kept as evidence."),
    )

    field_order = ("format", "since", "until", "who", "user", "query", "opens", "reason", "start", "stop", "older")

    def __init__(self, *args: Any, may_reveal: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_reveal:
            del self.fields["opens"], self.fields["reason"]

    def asked(self) -> dict[str, Any]:
        """As :func:`~evidence.exports.services.make_export` takes it, which knows no zone of a reader."""
        said = self.cleaned_data
        terms = {name: said[name] for name in ("format", "stop", "older", "opens", "reason") if name in said}
        more = fix_days(parse(said["query"]), timezone.get_current_timezone())
        return terms | {"start": said["start"] or 0, "query": self.read_scope().to_query(str(more))}

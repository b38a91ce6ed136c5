"""Forms of sinks: what people fill in about event sinks."""

from __future__ import annotations

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

from evidence.kinds import Kind
from evidence.models import SinkMode
from evidence.sinks.services import MAX_FILE_MB
from kernel.components.labels import FACT


class SinkForm(forms.Form):
    name = forms.SlugField(
        max_length=40,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("Letters, digits, hyphens and underscores."),
    )
    channel = forms.ChoiceField(
        choices=[
            ("webhook", gettext_lazy("To a server, as signed requests")),
            ("file", gettext_lazy("To files on the hub’s host, one event a line")),
        ],
        label=gettext_lazy("Where events go"),
    )
    url = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Address"),
        help_text=gettext_lazy("For a server: a public https address. Redirects are not followed."),
    )
    mode = forms.ChoiceField(
        choices=[
            (SinkMode.STRUCTURED.value, gettext_lazy("One event a request (structured)")),
            (SinkMode.BATCHED.value, gettext_lazy("Up to 100 events a request (batched)")),
        ],
        label=gettext_lazy("HTTP requests"),
        help_text=gettext_lazy("The content modes of CloudEvents. Not used for files."),
    )
    kinds = forms.MultipleChoiceField(
        required=False,
        choices=[(kind, format_lazy("{} · {}", FACT[kind][2], kind)) for kind in Kind.values],
        widget=forms.SelectMultiple(attrs={"size": 8}),
        label=gettext_lazy("Kinds of facts"),
        help_text=gettext_lazy("Leave all unticked for every kind, including those of later versions."),
    )
    max_mb = forms.IntegerField(
        min_value=1,
        max_value=MAX_FILE_MB,
        initial=64,
        label=gettext_lazy("Largest file, in MB"),
        help_text=gettext_lazy("A new file is started at this size, and every day (UTC)."),
    )
    from_beginning = forms.BooleanField(
        required=False,
        label=gettext_lazy("Start at the beginning of the log"),
        help_text=gettext_lazy("Otherwise only new events are sent."),
    )

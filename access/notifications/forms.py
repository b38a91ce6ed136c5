"""Forms of notifications: what people fill in about channels."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy

from access.notifications.services import EVENTS

CHANNELS = {"email": gettext_lazy("Email"), "webhook": gettext_lazy("Webhook")}


class ChannelForm(forms.Form):
    channel = forms.ChoiceField(choices=CHANNELS, label=gettext_lazy("Channel"))
    target = forms.CharField(
        max_length=500,
        label=gettext_lazy("Address"),
        help_text=gettext_lazy("An e-mail address, or the https address of a webhook."),
    )
    events = forms.MultipleChoiceField(
        choices=list(EVENTS.items()), widget=forms.CheckboxSelectMultiple, label=gettext_lazy("Events")
    )

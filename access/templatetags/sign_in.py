"""Sign-in tags: how pages show a QR code and forms of allauth, and hand options to the browser."""

from __future__ import annotations

import json as json_format
import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext

if TYPE_CHECKING:
    from django.forms import Form

register = template.Library()
PROLOG = re.compile(r"<\?xml[^>]*\?>")


@register.filter
def json(value: Any) -> str:
    """For an attribute: escaped like all other text."""
    return json_format.dumps(value)


@register.filter
def qr(svg: str) -> SafeString:
    """The image that the library drew, as part of the page: images from elsewhere are not allowed."""
    return SafeString(PROLOG.sub("", svg))


@register.filter
def is_address(host: str) -> bool:
    try:
        ip_address(host.rpartition(":")[0].strip("[]") or host)
    except ValueError:
        return False
    return True


@register.filter
def labelled(form: Form) -> Form:
    """A form of allauth's whose name has no label, so that Django would make one of the field's, in English."""
    form.fields["name"].label = gettext("Name")
    return form

"""What does a setting say whose text is more than a word or a number?"""

from __future__ import annotations

import json
from ipaddress import ip_network

from django.core.exceptions import ImproperlyConfigured


def runtimes_of(text: str) -> dict[str, str]:
    """``{"default": name, "untrusted": name}``, either of which may be left out."""
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    known = isinstance(names, dict) and set(names) <= {"default", "untrusted"}
    if not known or not all(isinstance(name, str) and name.strip() for name in names.values()):
        raise ImproperlyConfigured('TOOLHUB_SANDBOX_RUNTIMES is for example {"default": "runc", "untrusted": "runsc"}.')
    return dict(names)


def networks_of(text: str, name: str) -> list[str]:
    """Ranges of addresses, separated by commas. ``name`` is the setting's."""
    found = [each.strip() for each in text.split(",") if each.strip()]
    for each in found:
        try:
            ip_network(each)
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} is for example 10.20.0.0/16: {error}.") from error
    return found

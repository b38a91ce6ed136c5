"""Known devices: the browsers that a person has signed in with before.

Whoever tries passwords from elsewhere shall not keep a person out, so attempts are counted by name and address together, and those
of a device that the person has used by themselves (OWASP's device cookies). The cookie is signed and opens nothing.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from django.conf import settings
from django.core import signing

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

COOKIE = "device"
SALT = "known-device"
MAX_AGE_S = 365 * 24 * 60 * 60
MAX_PEOPLE = 8  # of one browser, the last that signed in first


def _read(request: HttpRequest) -> tuple[str, list[str]]:
    """The device's id, and who has signed in with it."""
    try:
        said = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=MAX_AGE_S)
        return str(said["id"]), [str(each) for each in said["people"]]
    except (signing.BadSignature, KeyError, TypeError):
        return "", []


def device_of(request: HttpRequest) -> str:
    """The id of the device that the request comes from, by the hub's signature; otherwise empty. The database is not asked."""
    return _read(request)[0]


def known_device(request: HttpRequest, person: str) -> str:
    """The id of the device that the request comes from, if that person has signed in with it; otherwise empty."""
    device, people = _read(request)
    return device if person in people else ""


def remember_device(request: HttpRequest, response: HttpResponse, person: str) -> None:
    device, people = _read(request)
    people = [person, *(each for each in people if each != person)][:MAX_PEOPLE]
    said = {"id": device or secrets.token_urlsafe(16), "people": people}
    response.set_cookie(
        COOKIE,
        signing.dumps(said, salt=SALT),
        max_age=MAX_AGE_S,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )

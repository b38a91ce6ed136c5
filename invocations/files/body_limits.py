"""Body limits of files: who may send a body as large as a file, and where to."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user
from rest_framework.request import Request

from access.authentication.bearer import ApiKeyAuthentication
from invocations.files.services import MAX_FILE_BYTES
from kernel.http.body_limits import WiderRoute
from kernel.ids import encode_user
from kernel.problems import Unauthenticated
from unitools.capsules import MAX_CAPSULE_BYTES
from unitools.openapi.documents import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from django.http import HttpRequest

FORM_BYTES = 64 * 1024  # what a browser puts around a file


def _agent(request: HttpRequest) -> str:
    principal, _ = ApiKeyAuthentication().authenticate(Request(request))
    return str(principal.id)


def _person(request: HttpRequest) -> str:
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key if key.isalnum() else None)
    user = get_user(request)
    if not user.is_authenticated:
        raise Unauthenticated("Nobody is signed in.", remedy="Sign in, then send the file again.")
    return encode_user(user.pk)


WIDER = (
    WiderRoute("PUT", re.compile(r"/api/v1/files/.+"), MAX_FILE_BYTES, _agent),
    WiderRoute("POST", re.compile(r"/api/v1/capsules"), MAX_CAPSULE_BYTES, _agent),
    WiderRoute("POST", re.compile(r"/files"), MAX_FILE_BYTES + FORM_BYTES, _person),
    WiderRoute("POST", re.compile(r"/bring/document"), MAX_DOCUMENT_BYTES + FORM_BYTES, _person),
)

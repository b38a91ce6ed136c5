"""Body limits of model calls: requests to models may hold pictures, and are as much larger."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rest_framework.request import Request

from invocations.model_calls.served.gemini.verbs import WIDE_VERBS
from invocations.model_calls.served.key_authentication import ServedKeyAuthentication
from kernel.http.body_limits import WiderRoute
from kernel.http.parsers import MAX_WIDE_BYTES

if TYPE_CHECKING:
    from django.http import HttpRequest


def _agent(request: HttpRequest) -> str:
    principal, _ = ServedKeyAuthentication().authenticate(Request(request))
    return str(principal.id)


# As the views have it that read with WideJSONParser.
PATHS = re.compile(
    r"/api/v1/models/[^/]+/(?:chat|preflight)|/v1/(?:chat/completions|responses|messages(?:/count_tokens)?)"
    rf"|/v1(?:beta)?/models/.+:(?:{'|'.join(WIDE_VERBS)})"
)
WIDER = (WiderRoute("POST", PATHS, MAX_WIDE_BYTES, _agent),)

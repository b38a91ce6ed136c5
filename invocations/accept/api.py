"""Call endpoints: what those that take calls have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invocations.serializers import SCOPE
from kernel.http.endpoints import Endpoint

if TYPE_CHECKING:
    from rest_framework.request import Request


class AskingView(Endpoint):
    """What it refuses by raising never became a call, and is counted (:mod:`invocations.request_tallies`)."""

    required_scope = SCOPE
    takes_calls = True


class CallView(AskingView):
    """Whether the key may make calls is decided with everything else about the call, so that this refusal has its pair too."""

    def check_permissions(self, request: Request) -> None:
        """In :func:`invocations.services.begin_call`."""

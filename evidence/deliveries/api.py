"""Answers and bodies that the endpoints of all receivers of messages share."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from evidence.deliveries.signing_secrets import MAX_OVERLAP, OVERLAP
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import StrictSerializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request


class OverlapSerializer(StrictSerializer):
    overlap_s = serializers.IntegerField(
        required=False,
        default=int(OVERLAP.total_seconds()),
        min_value=0,
        max_value=int(MAX_OVERLAP.total_seconds()),
        help_text="How long messages carry the signatures of both secrets.",
    )


def build_answer(data: Any, *, status: int = 200) -> Response:
    return Response(ResponseEnvelope(data=data).to_json(), status=status)


def build_secret_answer(data: dict[str, Any], secret: str) -> Response:
    """What was made, with the secret that is answered this once."""
    response = build_answer(data | {"secret": secret or None}, status=201)
    response.headers["Cache-Control"] = "no-store"
    return response


def build_action(
    operation_id: str,
    act: Callable[..., Any],
    about: str,
    *,
    scope: str,
    show: Callable[[Any], dict[str, Any]],
    answers: Any,
    body: type[StrictSerializer] | None = None,
    status: int = 200,
) -> type[Endpoint]:
    """The endpoint of one service, ``act``: it gets what the address names, the fields of the body, and who calls. It is of the
    package that has the service.
    """

    class ServiceEndpoint(Endpoint):
        __doc__, __module__ = about, act.__module__
        required_scope = scope

        @extend_schema(operation_id=operation_id, request=body, responses={status: answers})
        def post(self, request: Request, **named: Any) -> Response:
            fields = read_body(request, body) if body else {}
            return build_answer(show(act(**named, **fields, by=get_caller(request))), status=status)

    return ServiceEndpoint


def build_rotation(
    operation_id: str,
    rotate: Callable[..., tuple[Any, str]],
    *,
    scope: str,
    show: Callable[[Any], dict[str, Any]],
    answers: Any,
) -> type[Endpoint]:
    """The endpoint of a service that gives a receiver another secret."""

    class RotationEndpoint(Endpoint):
        """Another secret; until the overlap is over, messages carry the signatures of both."""

        __module__ = rotate.__module__
        required_scope = scope

        @extend_schema(operation_id=operation_id, request=OverlapSerializer, responses={201: answers})
        def post(self, request: Request, **named: Any) -> Response:
            overlap = timedelta(seconds=read_body(request, OverlapSerializer)["overlap_s"])
            row, secret = rotate(**named, overlap=overlap, by=get_caller(request))
            return build_secret_answer(show(row), secret)

    return RotationEndpoint

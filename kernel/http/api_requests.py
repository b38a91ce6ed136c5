"""API requests: who calls the API, and what the body of the request says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from rest_framework.request import Request

    from kernel.http.base_serializers import StrictSerializer
    from kernel.principal import Principal


def get_caller(request: Request) -> Principal:
    """The authenticated agent. DRF calls it ``user``; here nobody but people are users."""
    return cast("Principal", request.user)


def read_body(request: Request, serializer: type[StrictSerializer]) -> dict[str, Any]:
    """The body as the serializer reads it; refused with the names of the fields that are not right."""
    payload = serializer(data=request.data)
    payload.is_valid(raise_exception=True)
    return dict(payload.validated_data)

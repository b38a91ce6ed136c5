"""Answers and bodies that the endpoints of all receivers of messages share."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from evidence.deliveries.signing_secrets import MAX_OVERLAP, OVERLAP
from kernel.http.base_serializers import StrictSerializer
from kernel.http.envelopes import ResponseEnvelope


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

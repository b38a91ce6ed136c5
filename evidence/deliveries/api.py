"""Answers and bodies that the endpoints of all receivers of messages share."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from rest_framework import serializers
from rest_framework.response import Response

from evidence.deliveries.signing_secrets import MAX_OVERLAP, OVERLAP
from kernel.http.actions import ActionTable
from kernel.http.base_serializers import StrictSerializer
from kernel.http.envelopes import ResponseEnvelope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

R = TypeVar("R")
NO_STORE = {"Cache-Control": "no-store"}
ROTATION = "Another secret; until the overlap is over, messages carry the signatures of both."


class OverlapSerializer(StrictSerializer):
    overlap_s = serializers.IntegerField(
        required=False,
        default=int(OVERLAP.total_seconds()),
        min_value=0,
        max_value=int(MAX_OVERLAP.total_seconds()),
        help_text="How long messages carry the signatures of both secrets.",
    )

    def validate_overlap_s(self, seconds: int) -> timedelta:
        return timedelta(seconds=seconds)


def build_answer(data: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(ResponseEnvelope(data=data).to_json(), status=status, headers=headers)


def add_secret(data: dict[str, Any], secret: str) -> dict[str, Any]:
    return data | {"secret": secret or None}


def build_secret_answer(data: dict[str, Any], secret: str) -> Response:
    """What was made, with the secret that is answered this once."""
    return build_answer(add_secret(data, secret), status=201, headers=NO_STORE)


def build_secret_actions(
    module: str, scope: str, answer: Any, show: Callable[[R], dict[str, Any]]
) -> ActionTable[tuple[R, str]]:
    """Actions that give a receiver another secret, which is answered this once."""

    def show_secret(made: tuple[R, str]) -> dict[str, Any]:
        return add_secret(show(made[0]), made[1])

    return ActionTable(module, scope, answer, show_secret, renamed={"overlap_s": "overlap"}, headers=NO_STORE)

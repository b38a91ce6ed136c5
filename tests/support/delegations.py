"""Delegations: how do tests hand a grant on, and what do they look at then?"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from access.delegations.services import delegate_grant
from evidence.models import Fact

if TYPE_CHECKING:
    from access.grants.attenuation import RequestedTerms
    from access.models import Grant
    from tests.conftest import Caller

ECHO = "sample.tools.echo"
SOON = timezone.now() + timedelta(days=1)
SHORT = {"pointer": "/text", "op": "length_at_most", "value": 5}


def hand_on(given: Grant, giver: Caller, to: Caller, asked: RequestedTerms | None = None, **more: Any) -> Grant:
    said: dict[str, Any] = {"expires_at": SOON, "purpose": "to help"} | more
    return delegate_grant(grant_id=given.pk, to_agent_id=to.agent.pk, by=giver.by, asked=asked, **said)


def leaf(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(Fact.objects.filter(kind=kind).latest("id").leaf))["data"]
    return found


def refused_as(answer: Any) -> str | None:
    return answer.json()["error"]["reason"] if answer.status_code != 200 else None

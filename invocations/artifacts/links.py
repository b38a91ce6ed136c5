"""Artifact links: who may get an artifact without a key, and until when.

Whoever has its link, for a day after the call has ended. A link is signed with the secret of the hub over the tenant, the artifact,
the agent whose call it was and the time; a link that is asked for again is the same one, so that an answer that is given again is too.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from invocations.artifacts.problems import ArtifactLinkExpired, ArtifactLinkInvalid
from kernel.database.connections import database_time
from kernel.ids import decode, encode

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.models import Invocation

GOOD_FOR = timedelta(days=1)


def _signature(*, tenant: str, artifact: str, agent: str, expires: str) -> str:
    said = "\n".join((tenant, artifact, agent, expires))
    return salted_hmac("invocations.artifacts.links", said, algorithm="sha256").hexdigest()


def build_artifact_link(artifact: str, invocation: Invocation) -> str:
    """The address of an artifact of this call, which has ended."""
    assert invocation.finished_at is not None
    said = {
        "tenant": encode("ten", invocation.tenant_id),
        "agent": encode("agt", invocation.agent_id),
        "expires": str(int((invocation.finished_at + GOOD_FOR).timestamp())),
    }
    query = said | {"signature": _signature(artifact=artifact, **said)}
    return f"{settings.TOOLHUB_PUBLIC_URL}/api/v1/artifacts/{artifact}?{urlencode(query)}"


def check_link(artifact_id: UUID, query: dict[str, str]) -> tuple[UUID, UUID]:
    """Whose link this is: tenant and agent."""
    said = {name: query.get(name, "") for name in ("tenant", "agent", "expires")}
    signature = _signature(artifact=encode("art", artifact_id), **said)
    if not constant_time_compare(signature, query.get("signature", "")):
        raise ArtifactLinkInvalid(remedy="Use the url of call.artifacts as it is.")
    if database_time().timestamp() > int(said["expires"]):
        raise ArtifactLinkExpired(remedy="Get the artifact with the key of the agent.")
    return decode("ten", said["tenant"]), decode("agt", said["agent"])

"""Download links: who may download an export without a key, and until when.

Whoever has its link, for an hour after an agent that may export asked for it. A link is signed with the secret of the hub over the
tenant, the export, the agent and the time.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from evidence.problems import ExportLinkInvalid
from kernel.database.connections import database_time
from kernel.ids import decode, encode

if TYPE_CHECKING:
    from uuid import UUID

    from evidence.models import ExportJob

GOOD_FOR = timedelta(hours=1)


def _signature(*, tenant: str, export: str, agent: str, expires: str) -> str:
    said = "\n".join((tenant, export, agent, expires))
    return salted_hmac("evidence.exports.links", said, algorithm="sha256").hexdigest()


def link_to(job: ExportJob, *, agent: str) -> str:
    """The address of the content, for an hour. Whoever uses it acts for the agent that asked for it."""
    expires = str(int((database_time() + GOOD_FOR).timestamp()))
    said = {"tenant": encode("ten", job.tenant_id), "agent": agent, "expires": expires}
    query = said | {"signature": _signature(export=job.wire_id, **said)}
    return f"{settings.TOOLHUB_PUBLIC_URL}/api/v1/evidence/exports/{job.wire_id}/content?{urlencode(query)}"


def check_link(job_id: UUID, query: dict[str, str]) -> tuple[UUID, str]:
    """Whose link this is: the tenant and the agent."""
    said = {name: query.get(name, "") for name in ("tenant", "agent", "expires")}
    signature = _signature(export=encode("exp", job_id), **said)
    if not constant_time_compare(signature, query.get("signature", "")):
        raise ExportLinkInvalid()
    if database_time().timestamp() > int(said["expires"]):
        raise ExportLinkInvalid("The time of this link is over.")
    return decode("ten", said["tenant"]), said["agent"]

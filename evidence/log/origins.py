"""Origins: what a log is called.

Its origin is the address of its tiles without the scheme, as c2sp.org/tlog-tiles wants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings

from evidence.models import GLOBAL_LOG
from kernel.database.tenancy import NO_TENANT
from kernel.ids import decode, encode

if TYPE_CHECKING:
    from uuid import UUID

HUB, CHECKPOINTS = "hub", "checkpoints"
_SPECIAL = {NO_TENANT: HUB, GLOBAL_LOG: CHECKPOINTS}
_BY_NAME = {name: tenant_id for tenant_id, name in _SPECIAL.items()}


def log_name(tenant_id: UUID) -> str:
    """The last part of the log's address: `ten_…`, `hub` (facts of the hub itself) or `checkpoints` (the global log)."""
    return _SPECIAL.get(tenant_id) or encode("ten", tenant_id)


def parse_log_name(name: str) -> UUID:
    """Raises ``ValueError`` for what is no name of a log."""
    return _BY_NAME.get(name) or decode("ten", name)


def new_origin(tenant_id: UUID) -> str:
    """The origin of a log that begins now. One that began under another address keeps its own: :attr:`Log.origin`."""
    host = settings.TOOLHUB_LOG_ORIGIN or urlsplit(settings.TOOLHUB_PUBLIC_URL).netloc
    return f"{host}/log/{log_name(tenant_id)}"

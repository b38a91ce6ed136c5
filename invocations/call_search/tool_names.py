"""Tool names of calls: which tools a tenant's calls were of, without looking at the calls.

The index of calls by tool is walked from one name to the next: as many steps as there are names, however many calls.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.db import connection

from invocations.models import Invocation

if TYPE_CHECKING:
    from uuid import UUID

MOST = 2000
_JOINTS = re.compile(r"[._]")
_NAMES = """
    WITH RECURSIVE names(tool) AS (
        SELECT (SELECT MIN(tool) FROM invocations_invocation WHERE tenant_id = %(tenant)s)
        UNION ALL
        SELECT (SELECT MIN(tool) FROM invocations_invocation WHERE tenant_id = %(tenant)s AND tool > names.tool)
        FROM names WHERE names.tool IS NOT NULL
    )
    SELECT tool FROM names WHERE tool IS NOT NULL LIMIT %(most)s
"""


def list_tool_names(tenant_id: UUID) -> list[str]:
    """In their order; at most 2,000."""
    tenant = Invocation._meta.get_field("tenant").get_db_prep_value(tenant_id, connection)
    with connection.cursor() as cursor:
        cursor.execute(_NAMES, {"tenant": tenant, "most": MOST})
        return [name for (name,) in cursor.fetchall()]


def find_tool_names(word: str, *, tenant_id: UUID, starts: bool) -> list[str]:
    """Names of which ``word`` is a part, between dots or underscores; with ``starts`` the beginning of one, with a dot of the name."""

    def is_meant(name: str) -> bool:
        if "." in word:
            return name.startswith(word) or f".{word}." in f".{name}."
        parts = {*name.split("."), *_JOINTS.split(name)}
        return any(part.startswith(word) for part in parts) if starts else word in parts

    return [name for name in list_tool_names(tenant_id) if is_meant(name)]

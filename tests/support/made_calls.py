"""Made calls: rows of calls that ended some time ago, with Begin and End, for pages that count them."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from uuid import UUID

from invocations.models import FINAL, Invocation, State
from kernel.ids import lowest_id
from tests.support.begin_end_pairs import keep_calls

if TYPE_CHECKING:
    from datetime import datetime

    from tests.conftest import Caller

ECHO = "sample.tools.echo"


def make_calls(
    caller: Caller, at: datetime, *, state: State = State.SUCCEEDED, reason: str = "", tool: str = ECHO, times: int = 1
) -> list[Invocation]:
    """With ids of that time, as those of calls have."""
    rows = [
        Invocation(
            id=UUID(int=lowest_id(at).int | secrets.randbits(70)),
            tenant_id=caller.by.tenant_id,
            agent=caller.agent,
            tool=tool,
            state=state,
            reason=reason,
            request_id="x",
            arguments_fingerprint="",
            attempt=1,
            created_at=at,
            finished_at=at if state in FINAL else None,
        )
        for _ in range(times)
    ]
    return keep_calls(*rows)

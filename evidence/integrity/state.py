"""Log state: how long, how fresh and how far verified a log is, and which calls are open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evidence.integrity.signals import calls_without_end
from evidence.log.reader import list_vkeys
from evidence.log.state import LogState, log_state
from evidence.models import Checkpoint, Fact, Log, Verification, VerificationState
from kernel.ids import encode

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A Begin without its End."""

    invocation_id: UUID
    tool: str
    state: str
    begun_at: datetime

    @property
    def wire_id(self) -> str:
        return encode("inv", self.invocation_id)


@dataclass(frozen=True, slots=True)
class IntegrityState:
    """``passing``: the continuous verification; ``passed``: the last one that came to its end. ``open_calls``: the oldest ones."""

    log: Log | None
    sealing: LogState
    newest: Checkpoint | None
    keys: list[str]
    passing: Verification | None
    passed: Verification | None
    open_count: int
    open_calls: list[OpenCall]


def load_integrity_state(tenant_id: UUID) -> IntegrityState:
    log = Log.objects.filter(pk=tenant_id).first()
    passes = Verification.objects.filter(tenant_id=tenant_id, asked_by="")
    answers: Any = calls_without_end.send(sender=Fact, tenant_id=tenant_id)
    count, oldest = answers[0][1] if answers else (0, [])
    return IntegrityState(
        log=log,
        sealing=log_state(tenant_id),
        newest=Checkpoint.objects.filter(tenant_id=tenant_id).order_by("-size").first(),
        keys=list_vkeys(log.origin) if log else [],
        passing=passes.filter(state=VerificationState.RUNNING).first(),
        passed=passes.exclude(finished_at=None).order_by("-pk").first(),
        open_count=count,
        open_calls=oldest,
    )

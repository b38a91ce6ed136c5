"""Live output: what a tool has said so far, while it runs.

Lines and progress of a run are kept in one sealed snapshot, written anew a few times a second at most, and taken away when
the call ends: its logs are sealed then. Only the fraction done stands in the call's row. What a run that goes on for long has
said becomes evidence before it ends: every few seconds a segment, sealed for good, with a fact that is chained to the one before.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction

from access.redaction import apply_detectors
from evidence import services as evidence
from evidence.kinds import PAIR, Kind
from evidence.leaves.calls import LineRange, Segment
from evidence.models import Fact, Snapshot, SnapshotKind
from invocations.answer.wake_ups import get_waker
from invocations.end.end_record import build_caller_principal
from invocations.models import Invocation, State
from invocations.value_keys import find_values_key
from kernel.database.connections import release_connection
from kernel.observability.telemetry import read_trace_id
from registry.secrets.encodings import redact_secrets

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from invocations.sandbox.base import RunEvent

log = logging.getLogger("toolhub.worker")

EVERY_S = 0.25
MAX_LINES = 200  # the last ones
MAX_CHARS = 64 * 1024  # of them together
PROGRESS, LOG = "progress", "log"


class LiveReport:
    """Collects the events of one run; ``with`` it, and hand it to the sandbox as ``on_event``."""

    def __init__(self, invocation: Invocation, secrets: dict[str, str]) -> None:
        self._invocation = invocation
        self._secrets = secrets
        self._lock = threading.Lock()
        self._lines: deque[dict[str, Any]] = deque()
        self._chars = 0  # of the lines
        self._open: dict[str, str] = {}  # by stream: the line that has not ended
        self._count = 0
        self._progress: dict[str, Any] | None = None
        self._said = threading.Event()
        self._stop = threading.Event()
        self._writer: threading.Thread | None = None
        self._segments = 0
        self._sealed_to = 0  # the last line that is in a segment
        self._segment_at = time.monotonic() + settings.TOOLHUB_SEGMENT_S

    def __enter__(self) -> LiveReport:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stop.set()
        self._said.set()
        if self._writer is not None:
            self._writer.join()
        rest = self._unsealed()
        if rest and (
            self._segments or any(each["stream"] == LOG for each in rest)
        ):  # nowhere else what its caller was told
            self._try("seal", self._seal)

    def __call__(self, event: RunEvent) -> None:
        with self._lock:
            if event.stream == PROGRESS:
                self._note(event.progress)
            else:
                *whole, self._open[event.stream] = (self._open.get(event.stream, "") + event.text).split("\n")
                for text in whole:
                    self._add(event.stream, text)
                self._open[event.stream] = self._open[event.stream][-MAX_CHARS:]
            if self._writer is None and not self._stop.is_set():
                name = f"live-{self._invocation.wire_id}"
                self._writer = threading.Thread(target=self._write_down, name=name, daemon=True)
                self._writer.start()
        self._said.set()

    def _note(self, said: dict[str, Any]) -> None:
        """``{fraction?, message?}`` or ``{log}``: the shape was checked, the words are the tool's."""
        if LOG in said:
            self._add(LOG, str(said[LOG]))
            return
        at = datetime.now(UTC).isoformat()
        self._progress = {"fraction": said.get("fraction"), "message": str(said.get("message", "")), "at": at}

    def _add(self, stream: str, text: str) -> None:
        self._count += 1
        line = {"number": self._count, "at": datetime.now(UTC).isoformat(), "stream": stream, "text": text}
        self._lines.append(line)
        self._chars += len(text)
        while len(self._lines) > MAX_LINES or (self._chars > MAX_CHARS and len(self._lines) > 1):
            self._chars -= len(self._lines.popleft()["text"])

    def _document(self, *, for_good: bool = False) -> dict[str, Any]:
        """Without the tenant's secrets; what is sealed ``for_good`` also without what the detectors of the policy find."""
        with self._lock:
            lines, progress = list(self._lines), self._progress and dict(self._progress)
        changes: list[Callable[[str], str]] = []
        if self._secrets:
            changes.append(lambda text: redact_secrets(text, self._secrets))
        if for_good and self._invocation.obligations:
            changes.append(lambda text: str(apply_detectors(text, self._invocation.obligations)))
        for change in changes:
            texts = _changed([each["text"] for each in lines], change)
            lines = [each | {"text": text} for each, text in zip(lines, texts, strict=True)]
            if progress:
                progress["message"] = change(progress["message"])
        return {"attempt": self._invocation.attempt, "progress": progress, "lines": lines}

    def _unsealed(self) -> list[dict[str, Any]]:
        with self._lock:
            return [each for each in self._lines if each["number"] > self._sealed_to]

    def _seal(self) -> None:
        document = self._document(for_good=True)
        document["lines"] = [each for each in document["lines"] if each["number"] > self._sealed_to]
        if write_segment(self._invocation, document):
            self._segments += 1
            self._sealed_to = document["lines"][-1]["number"] if document["lines"] else self._sealed_to

    def _try(self, what: str, write: Callable[[], object]) -> None:
        try:
            write()
        except (DatabaseError, InterfaceError) as error:
            log.warning("What %s says now was not written (%s): %s", self._invocation.wire_id, what, error)
        finally:
            release_connection()

    def _write_down(self) -> None:
        """Until the run has ended: what is said now whenever there is something new, and a segment whenever one is due."""
        fresh = False  # something was said since the last segment
        while not self._stop.is_set():
            left = max(0.0, self._segment_at - time.monotonic())
            if self._said.wait(left if fresh else None):
                self._said.clear()
                if self._stop.is_set():
                    return
                fresh = True
                self._try("live", lambda: write_live(self._invocation, self._document()))
            if fresh and time.monotonic() >= self._segment_at:
                fresh = False
                self._try("segment", self._seal)
                self._segment_at = time.monotonic() + settings.TOOLHUB_SEGMENT_S
            if self._stop.wait(EVERY_S):
                return


def _changed(lines: list[str], change: Callable[[str], str]) -> list[str]:
    """What is to be hidden over several lines is found too, and then nothing is shown."""
    together = "\n".join(lines)
    hidden = change(together)
    texts = lines if hidden == together else hidden.split("\n")
    return texts if len(texts) == len(lines) else ["[withheld]"] * len(lines)


def read_fraction(document: dict[str, Any]) -> float | None:
    fraction = (document["progress"] or {}).get("fraction")
    return fraction if isinstance(fraction, int | float) and math.isfinite(fraction) else None


def write_live(invocation: Invocation, document: dict[str, Any]) -> bool:
    """Replace what is known of a run; False when it is not this run's any more."""
    with transaction.atomic():
        if not _still_runs(invocation, document):
            return False
        Snapshot.objects.filter(invocation_id=invocation.pk, kind=SnapshotKind.LIVE).delete()
        evidence.seal_values(
            tenant_id=invocation.tenant_id,
            invocation_id=invocation.pk,
            kind=SnapshotKind.LIVE,
            value=document,
            key=find_values_key(invocation),
        )
    get_waker().wake(invocation.pk)  # who follows it
    return True


def _still_runs(invocation: Invocation, document: dict[str, Any]) -> bool:
    """Whether the call is this run's. Until the transaction ends it stays so."""
    running = Invocation.objects.filter(pk=invocation.pk, state=State.RUNNING, attempt=invocation.attempt)
    return running.update(progress=read_fraction(document)) == 1


@transaction.atomic
def write_segment(invocation: Invocation, document: dict[str, Any]) -> bool:
    """Seal what a run said since the segment before, and bind it to that; False when the call is not this run's any more."""
    if not _still_runs(invocation, document):
        return False
    mine = Fact.objects.of_calls(invocation.pk)
    before = mine.filter(kind__in=(*PAIR, Kind.INVOCATION_SEGMENT)).order_by("-id").first()
    number = mine.filter(kind=Kind.INVOCATION_SEGMENT).count() + 1
    snapshot = evidence.seal_values(
        tenant_id=invocation.tenant_id,
        invocation_id=invocation.pk,
        kind=SnapshotKind.SEGMENT,
        number=number,
        value=document,
        key=find_values_key(invocation),
    )
    lines = document["lines"]
    fraction = read_fraction(document)
    said = Segment(
        number=number,
        attempt=invocation.attempt,
        after=bytes(before.leaf_hash).hex() if before else "",
        said=snapshot.to_commitment(),
        lines=LineRange(first=lines[0]["number"], last=lines[-1]["number"], count=len(lines))
        if lines
        else LineRange(count=0),
        thousandths_done=None if fraction is None else round(fraction * 1000),
    )
    evidence.record(
        kind=Kind.INVOCATION_SEGMENT,
        subject=invocation.wire_id,
        actor=build_caller_principal(invocation),
        invocation_id=invocation.pk,
        tool=invocation.tool,
        trace_id=read_trace_id(invocation.trace),
        data=said,
    )
    return True


def read_live_output(invocation: Invocation) -> dict[str, Any] | None:
    """For the one who made the call: progress, and what the tool logs for its caller.

    Where the answer is to be redacted, what a tool says in passing would go past that: then only the fraction is told.
    """
    if invocation.state != State.RUNNING:
        return None
    snapshot = Snapshot.objects.filter(invocation_id=invocation.pk, kind=SnapshotKind.LIVE).first()
    if snapshot is None:
        return None
    if invocation.obligations:
        return {"progress": {"fraction": invocation.progress}, "log": []}
    document = evidence.open_values(snapshot)
    return {"progress": document["progress"], "log": select_caller_lines(document)}


def select_caller_lines(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines that are for the caller; the rest is for the author."""
    return [
        {"number": each["number"], "at": each["at"], "text": each["text"]}
        for each in document["lines"]
        if each["stream"] == LOG
    ]

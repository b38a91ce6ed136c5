"""What has a tool said so far, while it runs?

Lines and progress of a run are kept in one sealed snapshot, written anew a few times a second at most, and taken away when
the call ends: its logs are sealed then. Only the fraction done stands in the call's row.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, InterfaceError, transaction

from evidence import services as evidence
from evidence.models import Snapshot, SnapshotKind
from invocations.leaks import redacted
from invocations.models import Invocation, State
from toolhub.kernel.db import release_connection

if TYPE_CHECKING:
    from types import TracebackType

    from invocations.sandbox.base import Event

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

    def __enter__(self) -> LiveReport:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stop.set()
        self._said.set()
        if self._writer is not None:
            self._writer.join()

    def __call__(self, event: Event) -> None:
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

    def _document(self) -> dict[str, Any]:
        """Without the tenant's secrets. A value over several lines is found too, and then nothing is shown."""
        with self._lock:
            lines, progress = list(self._lines), self._progress and dict(self._progress)
        if self._secrets:
            together = "\n".join(each["text"] for each in lines)
            hidden = redacted(together, self._secrets)
            if hidden != together:
                texts = hidden.split("\n")
                texts = texts if len(texts) == len(lines) else ["[withheld]"] * len(lines)
                lines = [each | {"text": text} for each, text in zip(lines, texts, strict=True)]
            if progress:
                progress["message"] = redacted(progress["message"], self._secrets)
        return {"progress": progress, "lines": lines}

    def _write_down(self) -> None:
        while True:
            self._said.wait()
            self._said.clear()
            if self._stop.is_set():
                return
            try:
                write_live(self._invocation, self._document())
            except (DatabaseError, InterfaceError) as error:
                log.warning("What %s says now was not written: %s", self._invocation.wire_id, error)
            finally:
                release_connection()
            if self._stop.wait(EVERY_S):
                return


def write_live(invocation: Invocation, document: dict[str, Any]) -> bool:
    """Replace what is known of a run; False when it is not this run's any more."""
    progress = document["progress"] or {}
    fraction = progress.get("fraction")
    if not isinstance(fraction, int | float) or not math.isfinite(fraction):
        fraction = None
    with transaction.atomic():
        running = Invocation.objects.filter(pk=invocation.pk, state=State.RUNNING, attempt=invocation.attempt)
        if not running.update(progress=fraction):
            return False
        Snapshot.objects.filter(invocation_id=invocation.pk, kind=SnapshotKind.LIVE).delete()
        evidence.seal_values(
            tenant_id=invocation.tenant_id, invocation_id=invocation.pk, kind=SnapshotKind.LIVE, value=document
        )
    return True


def live_of(invocation: Invocation) -> dict[str, Any] | None:
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
    said = [
        {"number": each["number"], "at": each["at"], "text": each["text"]}
        for each in document["lines"]
        if each["stream"] == LOG
    ]
    return {"progress": document["progress"], "log": said}

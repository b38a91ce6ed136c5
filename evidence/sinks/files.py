"""Sink files: how events reach files, each once, whenever the writer dies.

``<TOOLHUB_EVENTS_DIR>/<tenant>/<sink>/<day>-<index of the first event>.jsonl``, one event a line. A file is followed by another when
it has grown too large or the day (UTC) has changed. Lines are on the disk before the database knows of them; so after a crash the
files say how far they got: an unfinished line is cut off, and the last whole one says which event it is.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from django.conf import settings
from django.utils import timezone

from evidence.sinks.cloud_events import encode_event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidence.models import EventSink

TAIL = 1 << 16
MB = 1 << 20


def sink_folder(sink: EventSink) -> Path:
    return Path(settings.TOOLHUB_EVENTS_DIR) / sink.tenant_wire_id / sink.wire_id


@contextmanager
def open_writer(sink: EventSink) -> Iterator[Writer]:
    """The only writer of the sink's folder on this host, with what a crash left behind mended."""
    if not settings.TOOLHUB_EVENTS_DIR:
        raise OSError("TOOLHUB_EVENTS_DIR is not set any more.")
    folder = sink_folder(sink)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Writer(folder, sink.max_mb * MB)


class Writer:
    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._max_bytes = folder, max_bytes
        files = sorted(folder.glob("*.jsonl"))
        self._current = files[-1] if files else None
        self.next = 0  # the index after the last one that is in the files; 0: there is none
        for file in reversed(files):  # the newest is empty when its writer died before the first line
            last = _mend(file)
            if last is not None:
                self.next = last + 1
                break

    def append(self, events: list[tuple[int, dict[str, Any]]]) -> None:
        """Write them, and return when they are on the disk."""
        day = timezone.now().strftime("%Y-%m-%d")
        at = 0
        while at < len(events):
            with self._open(day, events[at][0]) as file:
                size = file.tell()
                while at < len(events) and (not size or size < self._max_bytes):
                    size += file.write(encode_event(events[at][1]) + b"\n")
                    at += 1
                file.flush()
                os.fsync(file.fileno())

    def _open(self, day: str, first: int) -> BinaryIO:
        file = self._current
        if file is None or not file.name.startswith(day) or file.stat().st_size >= self._max_bytes:
            file = self._current = self._folder / f"{day}-{first:020d}.jsonl"
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
            _sync_folder(self._folder)
        return file.open("ab")


def _mend(file: Path) -> int | None:
    """Cut off what is not a whole line; the index of the last event, None of an empty file."""
    with file.open("r+b") as opened:
        size = opened.seek(0, os.SEEK_END)
        tail, start = b"", size
        while start and tail.count(b"\n") < 2:
            start = max(0, start - TAIL)
            opened.seek(start)
            tail = opened.read(size - start)
        whole = tail.rpartition(b"\n")[0]
        end = start + len(whole) + 1 if b"\n" in tail else 0
        if end != size:
            opened.truncate(end)
            os.fsync(opened.fileno())
        if not end:
            return None
    return int(json.loads(whole.rpartition(b"\n")[2])["sequence"])


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

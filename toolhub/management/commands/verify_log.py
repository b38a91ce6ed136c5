"""Verify the logs as they are stored, now and by hand."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evidence.integrity.findings import IntegrityFinding
from evidence.integrity.rollback_detection import find_log, verify_continuation
from evidence.integrity.verifier import verify_whole
from evidence.log.origins import parse_log_name
from evidence.models import Log
from evidence.problems import ArchivedFactUnavailable

SHOWN = 20


class Command(BaseCommand):
    help = "Verify every log against its facts, tiles and checkpoints. Exit status: 0 good, 1 could not verify, 2 something is wrong."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--log", help="only this one: ten_…, hub or checkpoints")
        parser.add_argument(
            "--checkpoint", help="a file with a checkpoint that you kept: whether the stored log continues it"
        )

    def handle(self, *args: Any, log: str | None = None, checkpoint: str | None = None, **options: Any) -> None:
        del args, options
        wrong = self._kept(checkpoint) if checkpoint else self._logs(log)
        if wrong:
            sys.exit(2)

    def _kept(self, path: str) -> bool:
        try:
            note = Path(path).read_text()
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error}") from error
        log = find_log(note)
        if log is None:
            self.stdout.write("This database has no log of the name that the checkpoint says.")
            return True
        found = verify_continuation(log, note)
        self._say(found)
        if not found:
            self.stdout.write(f"{log.origin} continues the checkpoint; it has {log.size} leaves now.")
        return bool(found)

    def _logs(self, name: str | None) -> bool:
        logs = Log.objects.order_by("pk")
        if name is not None:
            try:
                logs = logs.filter(pk=parse_log_name(name))
            except ValueError as error:
                raise CommandError(f"{name} is no name of a log: ten_…, hub or checkpoints.") from error
        wrong, unread = False, list[str]()
        for log in logs:
            began, found, stopped = time.monotonic(), list[IntegrityFinding](), ""
            try:
                for finding in verify_whole(log):
                    found.append(finding)  # what was found before it stops counts
            except ArchivedFactUnavailable as problem:
                stopped = f" {problem.detail}"
                unread.append(log.origin)
            took = time.monotonic() - began
            state = f"{len(found)} findings" if found else "nothing found" if stopped else "good"
            self.stdout.write(f"{log.origin}: {log.size} leaves, {state} ({took:.1f} s){stopped}")
            self._say(found)
            wrong = wrong or bool(found)
        if unread and not wrong:
            raise CommandError(f"Not all of {', '.join(unread)} could be verified.")
        return wrong

    def _say(self, found: list[IntegrityFinding]) -> None:
        for finding in found[:SHOWN]:
            where = "the log" if finding.index is None else f"leaf {finding.index}"
            self.stdout.write(f"  {where}: {finding.code.label} {finding.detail}".rstrip())
        if len(found) > SHOWN:
            self.stdout.write(f"  and {len(found) - SHOWN} more")

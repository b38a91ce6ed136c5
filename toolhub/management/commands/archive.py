"""Copy the logs to an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from evidence.archives.object_stores import ArchiveUnavailable, open_store
from evidence.archives.services import ArchiveDiffers, archive_log, list_archived_logs, list_refusing_anchors
from evidence.archives.turns import ArchiveBusy, take_turn_at_archive
from evidence.log.origins import parse_log_name
from evidence.months.drops import drop_archived_months
from evidence.months.partitions import MonthsBusy
from toolhub.database.hub_role import may_alter_tables

if TYPE_CHECKING:
    from evidence.archives.object_stores import ObjectStore
    from evidence.models import Log

NOTHING_TO_DROP = (
    "Nothing to drop. A leaf may go when its month is over for a day, its bundle of 256 is archived and full, the fact of that is "
    "sealed, and a witness, a file or a repository outside has seen the checkpoint of the archive (TOOLHUB_WITNESSES and its like)."
)
REFUSED = (
    "Nothing to drop while anybody outside has seen another history than the hub has: {names}. `manage.py verify_log` verifies "
    "what is here; docs/how-to/look-after-the-log.md says what to do."
)


def _open() -> ObjectStore:
    return open_store(settings.TOOLHUB_ARCHIVE_URL, endpoint=settings.TOOLHUB_ARCHIVE_ENDPOINT)


class Command(BaseCommand):
    help = (
        "Copy every log to TOOLHUB_ARCHIVE_URL as far as it is sealed, read it back from there and verify it. What is there already "
        "stays; nothing is taken from the hub without --drop. Exit status: 0 all logs are there, 1 one is not."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--log", help="only this one: ten_… or hub")
        parser.add_argument(
            "--drop",
            action="store_true",
            help="copy nothing; drop from PostgreSQL what months that are over have in the archive (as the owner of the tables)",
        )

    def handle(self, *args: Any, log: str | None = None, drop: bool = False, **options: Any) -> None:
        del args, options
        if not settings.TOOLHUB_ARCHIVE_URL:
            raise CommandError("There is no archive. Set TOOLHUB_ARCHIVE_URL.")
        if drop:
            if log is not None:
                raise CommandError("--drop is for all logs at once, since a month has facts of each. Leave out --log.")
            self._drop()
            return
        logs = list_archived_logs()
        if log is not None:
            try:
                asked = parse_log_name(log)
            except ValueError as error:
                raise CommandError(f"{log} is no name of a log: ten_… or hub.") from error
            logs = [each for each in logs if each.pk == asked]
            if not logs:
                raise CommandError(f"There is no log {log} with anything in it that is archived.")
        store = _open()
        try:
            with take_turn_at_archive():
                failed = sum(not self._archive(each, store) for each in logs)
        except ArchiveBusy:
            raise CommandError("Another run is at it. Nothing was done.") from None
        if failed:
            raise CommandError(f"{failed} of {len(logs)} logs were not archived.")

    def _drop(self) -> None:
        if connection.vendor != "postgresql":
            raise CommandError("SQLite has no tables of months. Nothing was done.")
        if not may_alter_tables(connection):
            raise CommandError("Only who owns the tables drops any of them. Connect as the role that runs `migrate`.")
        dropped = 0
        try:
            with take_turn_at_archive():
                for month in drop_archived_months(_open()):
                    dropped += 1
                    self.stdout.write(f"{month.table}: {month.leaves} leaves; {month.before} bytes, now {month.after}")
        except ArchiveBusy:
            raise CommandError("Another run is at it. Nothing was done.") from None
        except (ArchiveDiffers, ArchiveUnavailable, MonthsBusy) as error:
            raise CommandError(str(error)) from error
        if not dropped:
            refusing = list_refusing_anchors()
            self.stdout.write(REFUSED.format(names=", ".join(refusing)) if refusing else NOTHING_TO_DROP)

    def _archive(self, log: Log, store: ObjectStore) -> bool:
        """One that fails keeps no other from its archive."""
        try:
            done = archive_log(log, store)
        except (ArchiveDiffers, ArchiveUnavailable) as error:
            self.stderr.write(f"{log.origin}: {error}")
            return False
        said = f"leaves {done.start} to {done.stop - 1}, {done.objects} objects" if done else "nothing new"
        self.stdout.write(f"{log.origin}: {said}, verified in {store}" if done else f"{log.origin}: {said}")
        return True

"""Copy the logs to an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from evidence.archives.object_stores import ArchiveUnavailable, open_store
from evidence.archives.services import ArchiveDiffers, archive_log, list_archived_logs
from evidence.archives.turns import ArchiveBusy, take_turn_at_archive
from evidence.log.origins import parse_log_name

if TYPE_CHECKING:
    from evidence.archives.object_stores import ObjectStore
    from evidence.models import Log


class Command(BaseCommand):
    help = (
        "Copy every log to TOOLHUB_ARCHIVE_URL as far as it is sealed, read it back from there and verify it. What is there already "
        "stays; nothing is taken from the hub. Exit status: 0 all logs are there, 1 one is not."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--log", help="only this one: ten_… or hub")

    def handle(self, *args: Any, log: str | None = None, **options: Any) -> None:
        del args, options
        if not settings.TOOLHUB_ARCHIVE_URL:
            raise CommandError("There is no archive. Set TOOLHUB_ARCHIVE_URL.")
        logs = list_archived_logs()
        if log is not None:
            try:
                asked = parse_log_name(log)
            except ValueError as error:
                raise CommandError(f"{log} is no name of a log: ten_… or hub.") from error
            logs = [each for each in logs if each.pk == asked]
            if not logs:
                raise CommandError(f"There is no log {log} with anything in it that is archived.")
        store = open_store(settings.TOOLHUB_ARCHIVE_URL, endpoint=settings.TOOLHUB_ARCHIVE_ENDPOINT)
        try:
            with take_turn_at_archive():
                failed = sum(not self._archive(each, store) for each in logs)
        except ArchiveBusy:
            raise CommandError("Another run is at it. Nothing was done.") from None
        if failed:
            raise CommandError(f"{failed} of {len(logs)} logs were not archived.")

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

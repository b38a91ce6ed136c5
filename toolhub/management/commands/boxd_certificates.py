"""Boxd certificates: those of workers and of sandbox hosts, signed by an authority of the hub's own."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from invocations.sandbox.wire.certificate_authority import HOLDS, CertificateAuthority

FOLDER = Path("/etc/toolhub/boxd")  # not in TOOLHUB_DATA_DIR, which every process of the hub has


class Command(BaseCommand):
    help = (
        "Make certificates by which workers and sandbox hosts know each other (TOOLHUB_SANDBOX_TLS_…). They hold for 90 days; type "
        "the same command again before they run out: new files count without a restart."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--host",
            action="append",
            default=[],
            metavar="NAME[,NAME…]",
            help="a sandbox host, by the names or addresses that stand in TOOLHUB_SANDBOX_HOSTS",
        )
        parser.add_argument(
            "--worker", action="append", default=[], metavar="NAME", help="a worker, as TOOLHUB_BOXD_WORKERS names it"
        )
        parser.add_argument(
            "--folder",
            type=Path,
            default=FOLDER,
            help=f"where the authority and the certificates are; {FOLDER} if omitted",
        )
        parser.add_argument("--days", type=int, default=HOLDS.days, help="for how many days they hold")

    def handle(self, *args: Any, host: list[str], worker: list[str], folder: Path, days: int, **options: Any) -> None:
        if not host and not worker:
            raise CommandError("Say for whom: --host NAME, --worker NAME, or both.")
        try:
            authority = CertificateAuthority(folder)
            for names in host:
                name, *others = [each.strip() for each in names.split(",")]
                files = authority.issue_for_host(name, others, holds=timedelta(days=days))
                self.stdout.write(f"host {name}: {files.certificate} and {files.key}")
            for name in worker:
                files = authority.issue_for_worker(name, holds=timedelta(days=days))
                self.stdout.write(f"worker {name}: {files.certificate} and {files.key}")
        except (OSError, ValueError) as error:
            raise CommandError(f"They cannot be made in {folder}: {error}") from error
        self.stdout.write(
            f"Each side needs its two files and {authority.folder / 'ca.pem'}. Keep ca.key where neither runs."
        )

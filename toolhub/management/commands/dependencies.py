"""Dependencies: the third-party packages installed on this host for tools, and those missing."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from invocations.run.probes import probe_version
from registry.dependencies import builder, store
from registry.dependencies.builder import Builder
from registry.dependencies.target import folder_name, target_name
from registry.models import Dependencies, DependencyState


class Command(BaseCommand):
    help = (
        "Report the state of the dependencies of each tool version, on this host too. Exits with 2 if something failed."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--build", action="store_true", help="first resolve and install what is pending")
        parser.add_argument(
            "--collect", action="store_true", help="remove the folders of this host that no version needs"
        )

    def handle(self, *args: Any, build: bool = False, collect: bool = False, **options: Any) -> None:
        try:
            if build:
                self._build()
            if collect:
                self._collect()
        except OSError as error:
            raise CommandError(f"{store.store_root()} cannot be used: {error.strerror}.") from error
        if not self._list():
            sys.exit(2)

    def _build(self) -> None:
        made = Builder(tell=lambda line: self.stdout.write(f"       {line}"), probe=probe_version)
        while made.pass_once():
            pass

    def _collect(self) -> None:
        with store.claim_host() as is_mine:
            if not is_mine:
                raise CommandError("A worker of this host is building; try again when it is done.")
            for name in builder.collect_folders():
                self.stdout.write(f"removed {name}")

    def _list(self) -> bool:
        good, here = True, store.list_folders()
        self.stdout.write(f"{target_name()}, in {store.store_root()}")
        for row in (
            Dependencies.objects.select_related("version__tool").order_by("version__tool__name", "pk").iterator()
        ):
            failed = row.state in (DependencyState.UNRESOLVED, DependencyState.FAILED)
            name = folder_name(row.lock_digest) if row.lock_digest else ""
            where = name[:16] if name in here else "not on this host" if row.state == DependencyState.READY else ""
            said = row.failure.get("message", "") if failed else where
            self.stdout.write(f"{row.state:10}  {row.version.tool.name} {row.version.version}  {said}".rstrip())
            good = good and not failed
        return good

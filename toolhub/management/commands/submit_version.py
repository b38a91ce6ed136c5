"""Submit a manifest as a version of a tool."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from kernel.http.parsers import read_json
from registry.versions.services import submit_version
from toolhub.management.tenant_command import TenantCommand

if TYPE_CHECKING:
    from kernel.principal import Principal


class Command(TenantCommand):
    help = (
        "Submit a manifest as a version that is waiting for review; its code lies under TOOLHUB_TOOLS_PATH. Exits with 1 when "
        "the manifest cannot be read, and with 2 when it is refused."
    )
    permission = "tools.submit"

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("manifest", metavar="FILE", help="JSON; - is the standard input")
        super().add_arguments(parser)

    def act(self, *, by: Principal, manifest: str = "", **options: Any) -> None:
        try:
            raw = sys.stdin.buffer.read() if manifest == "-" else Path(manifest).read_bytes()
        except OSError as error:
            raise CommandError(f"{manifest} cannot be read: {error.strerror}.") from error
        version = submit_version(document=read_json(raw), by=by)
        self.stdout.write(f"{version.tool.name} {version.version}: {version.review_state}")

"""Write a tenant's configuration as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from kernel.problems import Problem
from toolhub.configuration import services
from toolhub.configuration.file_format import write_text
from toolhub.management.actor import acting_in, find_tenant


class Command(BaseCommand):
    help = "Write the configuration of a tenant as a file that `apply` reads. Values of secrets and keys are not in it."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="the tenant's short name")
        parser.add_argument(
            "-o", "--output", default="-", metavar="FILE", help="the file to write; - is the standard output"
        )
        parser.add_argument("--json", action="store_true", help="JSON instead of YAML")
        parser.add_argument(
            "--as",
            dest="username",
            default="",
            metavar="USERNAME",
            help="the person to act as; the hub itself if omitted",
        )

    def handle(self, *args: Any, tenant: str, output: str, username: str, **options: Any) -> None:
        try:
            with acting_in(find_tenant(tenant), permission="configuration.apply", username=username) as by:
                document = services.export_configuration(by=by)
        except Problem as problem:
            raise CommandError(f"{problem.detail} {problem.remedy}".strip()) from problem
        text = write_text(document, "json" if options["json"] else "yaml")
        if output == "-":
            self.stdout.write(text, ending="")
            return
        try:
            Path(output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{output} cannot be written: {error.strerror}.") from error

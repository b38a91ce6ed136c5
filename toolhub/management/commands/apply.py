"""Make a tenant what a configuration file says, after showing what would change."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from kernel.problems import NotFound, Problem
from toolhub.configuration import services
from toolhub.configuration.document import read_document
from toolhub.configuration.file_format import MAX_BYTES, read_text
from toolhub.configuration.plan import Action
from toolhub.configuration.problems import ConfigurationInvalid
from toolhub.management.actor import acting_in, find_tenant
from toolhub.management.sentences import describe_problem, flatten_text

if TYPE_CHECKING:
    from kernel.principal import Principal
    from toolhub.configuration.document import ConfigurationDocument
    from toolhub.configuration.plan import ConfigurationPlan

SIGNS = {Action.CREATE: "+", Action.CHANGE: "~", Action.END: "-"}
CAN_APPLY = "configuration.apply"
CANNOT_RUN = (ConfigurationInvalid, NotFound)
MAX_SHOWN = 100


def shorten_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return flatten_text(text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…")


class Command(BaseCommand):
    help = (
        "Show what a configuration file would change in a tenant, ask, and apply it: all of it or nothing. Exits with 0 when "
        "the tenant matches the file, 1 when the file cannot be read, 2 when it was refused or, with --plan-only, differs."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("-f", "--file", required=True, metavar="FILE", help="YAML or JSON; - is the standard input")
        parser.add_argument(
            "--tenant", default="", metavar="SLUG", help="the tenant's short name, if the file does not name one"
        )
        parser.add_argument(
            "--as",
            dest="username",
            default="",
            metavar="USERNAME",
            help="the person to act as; the hub itself if omitted",
        )
        parser.add_argument(
            "--prune", action="store_true", help="end what the file leaves out, in each of its sections"
        )
        parser.add_argument("--reason", default="", metavar="TEXT", help="kept as evidence with every change")
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        parser.add_argument(
            "--plan-only", action="store_true", help="change nothing; exit with 2 when something would change"
        )

    def handle(self, *args: Any, file: str, tenant: str, username: str, prune: bool, **options: Any) -> None:
        try:
            document = read_document(read_text(self._read(file)), prune_all=prune)
            slug = tenant or document.tenant
            if not slug:
                raise CommandError("The file names no tenant. Say which with --tenant.")
            with acting_in(find_tenant(slug), permission=CAN_APPLY, username=username) as by:
                good = self._run(document, by=by, asks=file != "-", **options)
        except CANNOT_RUN as problem:
            raise CommandError("\n".join(describe_problem(problem))) from problem
        except Problem as problem:
            self.stderr.write("\n".join(describe_problem(problem)))
            good = False
        if not good:
            sys.exit(2)

    def _read(self, file: str) -> bytes:
        try:
            if file == "-":
                return sys.stdin.buffer.read(MAX_BYTES + 1)
            with Path(file).open("rb") as opened:
                return opened.read(MAX_BYTES + 1)
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from error

    def _run(
        self,
        document: ConfigurationDocument,
        *,
        by: Principal,
        asks: bool,
        plan_only: bool,
        yes: bool,
        reason: str,
        **options: Any,
    ) -> bool:
        """Whether the tenant is as the file says in the end."""
        plan = services.plan_configuration(document, by=by)
        self._show(plan)
        if plan.is_empty or plan_only:
            return plan.is_empty
        if not yes and not (asks and self._agreed()):
            self.stdout.write(
                "Nothing was changed." if asks else "Nothing was changed: nobody can be asked; use --yes."
            )
            return False
        done = services.apply_configuration(document=document, plan_digest=plan.digest, reason=reason, by=by)
        self.stdout.write(f"Applied {len(done.plan.doing)} changes.")
        for target, secret in done.shown_once.items():
            self.stdout.write(f"The signing secret of {target}, shown this once: {secret}")
        for warning in services.list_applied_warnings(done, by=by):
            self.stdout.write(f"! {flatten_text(warning)}")
        return True

    def _show(self, plan: ConfigurationPlan) -> None:
        for change in plan.doing:
            self.stdout.write(f"{SIGNS[change.action]} {change.section:13} {flatten_text(change.sentence)}")
            if change.action is Action.CHANGE:
                for name in change.after or {}:
                    before, after = (change.before or {}).get(name), (change.after or {})[name]
                    self.stdout.write(f"                  {name}: {shorten_value(before)} -> {shorten_value(after)}")
        for warning in plan.warnings:
            self.stdout.write(f"! {flatten_text(warning)}")
        counts = plan.counts
        self.stdout.write(
            f"{counts['create']} to create, {counts['change']} to change, {counts['end']} to end, {counts['same']} as they are."
        )

    def _agreed(self) -> bool:
        try:
            return input("Apply this? [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:
            return False

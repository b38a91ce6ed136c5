"""Approve or refuse a version that was submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel.problems import NotFound
from registry.models import Decision, VersionState
from registry.reviews.services import approvals_missing, changes_to_acknowledge, review_version
from registry.tools.selectors import get_tool
from registry.versions.bump import changes_now
from toolhub.management.sentences import flatten_text
from toolhub.management.tenant_command import TenantCommand

if TYPE_CHECKING:
    from kernel.principal import Principal


class Command(TenantCommand):
    help = (
        "Approve or refuse a version that somebody else submitted; without --approve or --refuse, show what it changes. Exits "
        "with 2 if a rule refuses it."
    )
    permission = "tools.review"
    by_somebody = True

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tool", metavar="TOOL", help="the tool's id")
        parser.add_argument("number", metavar="VERSION", help="for example 1.0.0")
        decisions = parser.add_mutually_exclusive_group()
        decisions.add_argument(
            "--approve",
            action="store_const",
            const=Decision.APPROVE,
            dest="decision",
            help="approve the version, so that it can be enabled",
        )
        decisions.add_argument(
            "--refuse", action="store_const", const=Decision.REFUSE, dest="decision", help="with --note: why"
        )
        parser.add_argument("--note", default="", metavar="TEXT", help="kept with the review")
        parser.add_argument(
            "--acknowledge",
            action="append",
            default=[],
            metavar="CHANGE",
            help="the id of a risky change that you acknowledge; may be repeated",
        )
        super().add_arguments(parser)

    def act(self, *, by: Principal, tool: str = "", number: str = "", **options: Any) -> None:
        version = get_tool(tool, tenant_id=by.tenant_id).versions.filter(version=number).first()
        if version is None:
            raise NotFound(f"There is no version {number[:60]} of {tool}.")
        _, changes = changes_now(version)
        if options["decision"] is None:
            risky = changes_to_acknowledge(changes)
            for change in changes:
                mark = f"--acknowledge {change['id']}" if change in risky else "-"
                self.stdout.write(flatten_text(f"{mark} {change['pointer'] or '/'}: {change['message']}"))
            self.stdout.write(f"{tool} {number}: {version.review_state}; changes: {len(changes)}")
            return
        review_version(
            version_id=version.pk,
            decision=options["decision"],
            note=options["note"],
            by=by,
            acknowledged=options["acknowledge"],
        )
        version.refresh_from_db()
        missing = approvals_missing(version) if version.review_state == VersionState.SUBMITTED else 0
        more = f"; approvals missing: {missing}" if missing else ""
        self.stdout.write(f"{tool} {number}: {version.review_state}{more}")

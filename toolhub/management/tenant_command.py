"""Command that changes something in one tenant, for somebody with a shell."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.management.base import BaseCommand, CommandError

from kernel.problems import Malformed, NotFound, Problem
from registry.problems import UnknownTool
from toolhub.management.actor import acting_in, find_tenant
from toolhub.management.sentences import describe_problem

if TYPE_CHECKING:
    from kernel.principal import Principal

CANNOT_RUN = (NotFound, UnknownTool, Malformed)


class TenantCommand(BaseCommand, ABC):
    """What a service does for ``by``. Exits with 1 when what is named is not there, and with 2 when a rule says no.

    A secret that is shown once goes to the standard output alone, all else that is said about it to the standard error: so a
    script can keep the one and a person reads the other.
    """

    permission: ClassVar[str]  # of the person who is named
    by_somebody: ClassVar[bool] = False  # a person must be named: it is a decision of theirs

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="the tenant's short name")
        parser.add_argument(
            "--as",
            dest="username",
            default="",
            required=self.by_somebody,
            metavar="USERNAME",
            help="who does it" + ("" if self.by_somebody else "; the hub itself if left out"),
        )

    def handle(self, *args: Any, tenant: str, username: str, **options: Any) -> None:
        try:
            with acting_in(find_tenant(tenant), permission=self.permission, username=username) as by:
                self.act(by=by, **options)
        except CANNOT_RUN as problem:
            raise CommandError("\n".join(describe_problem(problem))) from problem
        except Problem as problem:
            self.stderr.write("\n".join(describe_problem(problem)))
            sys.exit(2)

    @abstractmethod
    def act(self, *, by: Principal, **options: Any) -> None:
        """Call the service and say what came of it."""

"""Invite somebody into a tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from access.members.invitations import invite_person
from access.roles import Role
from toolhub.management.tenant_command import TenantCommand

if TYPE_CHECKING:
    from kernel.principal import Principal


class Command(TenantCommand):
    help = (
        "Invite somebody into a tenant, and print the link with which they choose a password unless it was sent by e-mail. Exits "
        "with 2 if a rule refuses it."
    )
    permission = "members.manage"

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("person", metavar="USERNAME", help="the user name that they sign in with")
        parser.add_argument(
            "--role",
            action="append",
            required=True,
            dest="roles",
            choices=[str(role) for role in Role],
            help="a role in the tenant; may be repeated",
        )
        parser.add_argument("--name", default="", help="the name that others see")
        parser.add_argument(
            "--email", default="", help="the address that the link is sent to, if the hub can send e-mail"
        )
        super().add_arguments(parser)

    def act(self, *, by: Principal, person: str = "", **options: Any) -> None:
        roles, name, email = set(options["roles"]), options["name"], options["email"]
        _, link = invite_person(username=person, name=name, email=email, roles=roles, by=by)
        belongs = f"{person} belongs to the tenant as {', '.join(sorted(roles))}."
        if link is None:
            self.stderr.write(f"{belongs} The hub knew them already: they sign in as before.")
        elif link:
            self.stderr.write(f"{belongs} Hand this to {person} only; it works once, for three days:")
            self.stdout.write(link)
        else:
            self.stderr.write(f"{belongs} The link to choose a password was mailed to {email}.")

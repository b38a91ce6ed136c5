"""Make a key for an agent."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from access.agents.services import KEY_LIFETIME, create_key
from access.models import Agent
from access.roles import AGENT_SCOPES
from kernel.database.connections import database_time
from kernel.problems import NotFound
from toolhub.management.tenant_command import TenantCommand

if TYPE_CHECKING:
    from kernel.principal import Principal


class Command(TenantCommand):
    help = (
        "Create a key for an agent of a tenant and print it, once: the hub keeps only a hash. Exits with 2 if a rule "
        "refuses it. Agents are created with `apply`."
    )
    permission = "agents.manage"

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("agent", metavar="AGENT", help="the agent's name")
        parser.add_argument(
            "--scope",
            action="append",
            dest="scopes",
            metavar="SCOPE",
            help=f"what the key may do; may be repeated; without any: {', '.join(AGENT_SCOPES)}",
        )
        parser.add_argument("--days", type=int, default=KEY_LIFETIME.days, help="how many days it is valid")
        parser.add_argument(
            "--network",
            action="append",
            default=[],
            dest="networks",
            metavar="CIDR",
            help="a network that it may be used from; may be repeated",
        )
        parser.add_argument("--name", default="", help="what it is for")
        super().add_arguments(parser)

    def act(self, *, by: Principal, agent: str = "", **options: Any) -> None:
        found = Agent.objects.filter(tenant_id=by.tenant_id, name=agent).first()
        if found is None:
            raise NotFound(f"There is no agent {agent[:80]} in this tenant.", remedy="Make it with `manage.py apply`.")
        key, text = create_key(
            agent=found,
            by=by,
            scopes=options["scopes"] or AGENT_SCOPES,
            expires_at=database_time() + timedelta(days=options["days"]),
            name=options["name"],
            networks=options["networks"],
        )
        self.stderr.write(
            f"A key of {found.name}, shown this once. It works until {key.expires_at:%Y-%m-%d} for {', '.join(key.scopes)}."
        )
        self.stdout.write(text)

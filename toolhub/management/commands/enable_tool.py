"""Let a tool be called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel.problems import NotFound
from registry.tools.lifecycle import enable_tool
from registry.tools.selectors import get_tool
from toolhub.management.tenant_command import TenantCommand

if TYPE_CHECKING:
    from kernel.principal import Principal


class Command(TenantCommand):
    help = (
        "Enable a tool with an approved version; it is installed in the tenant that publishes it. Exits with 2 if a rule "
        "refuses it."
    )
    permission = "tools.operate"

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("tool", metavar="TOOL", help="the tool's id")
        parser.add_argument(
            "number",
            metavar="VERSION",
            nargs="?",
            default="",
            help="for example 1.0.0; if omitted, the current one, and at first the only one that is approved",
        )
        parser.add_argument("--reason", required=True, metavar="TEXT", help="kept as evidence")
        super().add_arguments(parser)

    def act(self, *, by: Principal, tool: str = "", number: str = "", reason: str = "", **options: Any) -> None:
        version = get_tool(tool, tenant_id=by.tenant_id).versions.filter(version=number).first() if number else None
        if number and version is None:
            raise NotFound(f"There is no version {number[:60]} of {tool}.")
        enabled = enable_tool(name=tool, version_id=version.pk if version else None, reason=reason, by=by)
        assert enabled.current is not None
        self.stdout.write(f"{tool} {enabled.current.version} is enabled")

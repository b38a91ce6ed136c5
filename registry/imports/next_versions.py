"""Next versions: a tool of a server somewhere else that lists it otherwise than it was reviewed becomes a version with the difference.

The server is asked with what its tool sends on each call, so nobody has to type a token; it goes to the address of the version that
was reviewed and enabled, and nowhere else: only while a paused installation has it, and nothing stops calls of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from access.halts.services import check_not_halted
from kernel.problems import Conflict
from registry.imports import drafts as import_drafts
from registry.imports.remote_lists import fetch_remote_list
from registry.imports.services import import_remote_list
from registry.imports.submissions import submit_import
from registry.models import Installation, InstallationState, Tool
from registry.secrets.services import open_secrets

if TYPE_CHECKING:
    from kernel.principal import Principal
    from registry.models import ToolVersion


def can_have_next_version(version: ToolVersion | None, installation: Installation | None) -> bool:
    """Whether it is a paused tool of a server that is somewhere else."""
    is_paused = installation is not None and installation.state == InstallationState.PAUSED
    return is_paused and version is not None and version.view.remote is not None and version.yanked_at is None


def check_can_make_next_version(installation: Installation, version: ToolVersion, *, by: Principal) -> None:
    """A developer has the tenant's secrets sent: only where a call of the version would send them once it is resumed."""
    name = version.tool.name
    if version.view.account is not None:
        raise Conflict(
            f"The server of {name} is asked as a person, whose account is not used for this.",
            remedy="Bring it again by the command: unitools bring remote, with --account.",
        )
    if not can_have_next_version(version, installation):
        raise Conflict(
            f"{name} is not paused with a version that can be used, so its server is not asked.",
            remedy="Bring the tool from the server's address, with a token to read its list.",
        )
    check_not_halted(
        tenant_id=by.tenant_id,
        publisher_id=version.tool.tenant_id,
        agent_id=by.agent_id,
        tool=name,
        version_id=version.pk,
    )


def make_next_version(*, name: str, by: Principal) -> ToolVersion:
    """Read what the server lists now, and submit what it says of this tool as the version that follows."""
    tool = Tool.objects.get(tenant_id=by.tenant_id, name=name)
    rows = Installation.objects.filter(tenant_id=by.tenant_id, tool=tool)
    installation = rows.select_related("version__tool").first()
    # A version that waits for its review may name any address: the tenant's secrets are for the one that was enabled.
    version = installation.version if installation is not None else None
    if installation is None or version is None or (remote := version.view.remote) is None:
        raise Conflict(
            f"{name} is no tool of a server that is somewhere else, or no version of it is enabled here.",
            remedy="Bring the tool from the server's address.",
        )
    check_can_make_next_version(installation, version, by=by)
    secrets = open_secrets(installation, version.view)
    listing = fetch_remote_list(remote["url"], remote["credentials"], secrets, by.tenant_id)
    wanted = str(version.view.origin["tool"])
    if wanted not in listing.tools:
        raise Conflict(
            f"The server has no tool {wanted[:100]} any more.",
            remedy="Deprecate the tool, or bring the one that takes its place.",
        )
    row = import_remote_list(
        url=remote["url"],
        credentials=remote["credentials"],
        group=name.rpartition(".")[0],
        listing=listing,
        candidates=[wanted],
        by=by,
    )
    draft = next((each for each in row.drafts if each["id"] == name), None)
    if draft is None or not import_drafts.is_otherwise(draft):
        raise Conflict(
            f"The server lists {wanted[:100]} as {version.version} has it.",
            remedy="If that version is enabled, resume the installation. If it waits for its review, have it reviewed.",
        )
    [made] = submit_import(import_id=row.pk, tools=[name], by=by)
    return made

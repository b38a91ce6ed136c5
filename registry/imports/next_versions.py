"""Next versions: a tool of a server somewhere else that lists it otherwise than it was reviewed becomes a version with the difference.

The server is asked with what its tool sends on each call, so nobody has to type a token; it goes to the address that was reviewed, and
nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.problems import Conflict
from registry.imports import drafts as import_drafts
from registry.imports.remote_lists import build_headers, fetch_remote_list
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
    return is_paused and version is not None and version.view.remote is not None


def make_next_version(*, name: str, by: Principal) -> ToolVersion:
    """Read what the server lists now, and submit what it says of this tool as the version that follows."""
    tool = Tool.objects.get(tenant_id=by.tenant_id, name=name)
    version = import_drafts.find_newest(tool)
    if version is None or version.view.remote is None:
        raise Conflict(f"{name} is no tool of a server that is somewhere else.")
    remote = version.view.remote
    installation = Installation.objects.filter(tenant_id=by.tenant_id, tool=tool).first()
    values = open_secrets(installation, version.view) if installation is not None else {}
    listing = fetch_remote_list(remote["url"], build_headers(remote["credentials"], values))
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

"""Import submissions: drafts become versions that wait for their review, and evidence says by whose choice.

Operations of a document are manifests and nothing else; tools of a server travel in a package with what it lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.imports import ChosenEffect, SubmittedImport
from kernel.problems import Conflict
from registry.capsules.services import upload_capsule
from registry.imports.drafts import compute_draft_digest, list_made
from registry.imports.models import ImportKind
from registry.imports.services import check_read, lock_import
from registry.versions import services as versions
from unitools.capsules import pack_capsule
from unitools.mcp_listings import LISTING_FILE
from unitools.publications import derive_package_name

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from kernel.principal import Principal
    from registry.imports.drafts import ImportDraft
    from registry.imports.models import Import
    from registry.models import ToolVersion

MAX_MADE = 20  # versions of one tool, of which is kept what the source made of them
MAX_MADE_OPERATIONS = 5  # of an operation all that a manifest says is kept


@transaction.atomic
def submit_import(
    *, import_id: UUID, tools: Collection[str] | None = None, by: Principal, seen: str = ""
) -> list[ToolVersion]:
    """Register the drafts as versions that wait for their review; all of them, or none. ``tools``: only these. ``seen``: the digest
    of the drafts that they read, so that they submit nothing else."""
    row = lock_import(import_id, by=by)
    check_read(row)
    if seen and seen != compute_draft_digest(row.drafts):
        raise Conflict(
            "The drafts were changed after you opened this page.", remedy="Read them as they are now, then submit them."
        )
    drafts: list[ImportDraft] = [each for each in row.drafts if tools is None or each["id"] in tools]
    if not drafts:
        raise Conflict("There are no drafts to submit.", remedy="Choose operations or tools first.")
    documents = [each["document"] for each in drafts]
    drafters = {each["id"]: each["edited_by"] for each in drafts}
    if row.kind == ImportKind.OPENAPI:
        prepared = [versions.prepare_version(document=each, by=by) for each in documents]
        made = [versions.register_version(each, by=by, drafted_by=drafters[each.document["id"]]) for each in prepared]
    else:
        listing = {f"{derive_package_name(row.group)}/{LISTING_FILE}": row.unpack_content()}
        made = upload_capsule(content=pack_capsule(documents, listing).data, by=by, drafters=drafters).versions
    evidence.record(
        kind=Kind.IMPORT_SUBMITTED,
        subject=row.wire_id,
        actor=by,
        data=SubmittedImport(
            group=row.group,
            digest=row.digest,
            versions=[{"tool": each.tool.name, "version": each.version, "id": each.wire_id} for each in made],
        ),
    )
    by_tool = {each.tool.name: each for each in made}
    for draft in filter(has_other_effect, drafts):
        _record_effect(draft, by_tool[draft["id"]], by=by)
    row.made = _keep_made(row, drafts)
    row.drafts, row.refusals = [each for each in row.drafts if each not in drafts], []
    row.save(update_fields=["drafts", "refusals", "made", "changed_at"])
    return made


def _keep_made(row: Import, drafts: Sequence[ImportDraft]) -> dict[str, Any]:
    """What the source alone made of what is submitted, beside what it made before."""
    is_document = row.kind == ImportKind.OPENAPI
    most, beside = (MAX_MADE_OPERATIONS, {"choices": row.source["choices"]}) if is_document else (MAX_MADE, {})
    now = {
        each["name"]: [
            *list_made(row, each["name"])[1 - most :],
            {"version": each["document"]["version"], "made": each["made"]} | beside,
        ]
        for each in drafts
    }
    before = {name: list_made(row, name) for name in (*row.made.get("operations", {}), *row.made.get("tools", {}))}
    return {"tools": before | now}


def has_other_effect(draft: ImportDraft) -> bool:
    """Whether a person has chosen another one than the source proposes."""
    return bool(draft["document"].get("side_effect") != draft["proposed"]["side_effect"])


def _record_effect(draft: ImportDraft, version: ToolVersion, *, by: Principal) -> None:
    evidence.record(
        kind=Kind.IMPORT_EFFECT_CHOSEN,
        subject=version.tool.urn,
        actor=by,
        tool=version.tool.name,
        data=ChosenEffect(
            version=version.version,
            id=version.wire_id,
            proposed=draft["proposed"]["side_effect"],
            chosen=version.side_effect,
            chosen_by=draft["chosen_by"],
            reason=draft["reason"],
        ),
    )

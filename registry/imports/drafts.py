"""Import drafts: manifests that are made of what a source says, held against the versions that the catalogue has.

What a person writes into a draft stays when the source is read again; the number of a version is what its changes ask for.
"""

from __future__ import annotations

from contextlib import nullcontext
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypedDict

from django.db.models import OuterRef, Subquery

from kernel.canonical import compute_digest
from registry.imports.models import ImportKind
from registry.imports.pinned_listings import PinnedListings
from registry.imports.problems import SourceUnfit
from registry.imports.sources import build_brought_source, build_choices
from registry.imports.turns import taking_turn
from registry.models import Tool, ToolVersion, VersionState
from unitools import brought_merges, brought_operations, brought_remotes, brought_tools
from unitools.changes import ManifestChange, compare_manifests, compute_needed_bump
from unitools.mcp_listings import Listing, ListingUnfit
from unitools.metadata import derive_hub_segment
from unitools.openapi.documents import DocumentUnfit, read_document
from unitools.publications import find_id_collisions
from unitools.semver import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from uuid import UUID

    from registry.imports.models import Import
    from unitools.openapi.documents import OpenApiDocument

_KINDS = {ImportKind.OPENAPI: "openapi", ImportKind.REMOTE: "mcp_remote", ImportKind.PACKAGE: "mcp_stdio"}
MAX_SMALL_BYTES = 64 * 1024  # such a document is read in a moment, and waits for nobody
_BEFORE_ALL = "0.0.0-0"
_NOT_OF_A_TOOL = "/origin"  # what changed there alone is no other tool


class ImportDraft(TypedDict):
    """``name`` as the source has it; ``base``: the version that it changes, empty for a new tool; ``proposed``: what the source
    makes of the effect; ``reason``: why a person has chosen another one, ``chosen_by``: who; ``edited_by``: all who have written in
    it; ``made``: as the source alone has it, of a server what :func:`brought_merges.pick_merged` keeps."""

    id: str
    name: str
    document: dict[str, Any]
    base: str
    changes: list[dict[str, Any]]
    notes: list[dict[str, str]]
    proposed: dict[str, str]
    reason: str
    chosen_by: str
    edited_by: list[str]
    made: dict[str, Any]


def find_brought(row: Import) -> dict[str, ToolVersion]:
    """The newest version of each tool of the group that came from such a source, by the source's name for it."""
    beginning = f"{row.group}."
    newest = ToolVersion.objects.filter(tool=OuterRef("pk"), yanked_at=None).exclude(review_state=VersionState.REFUSED)
    tools = Tool.objects.filter(tenant_id=row.tenant_id, name__startswith=beginning)
    rows = ToolVersion.objects.filter(pk__in=tools.values(newest=Subquery(newest.order_by("-pk").values("pk")[:1])))
    found: dict[str, ToolVersion] = {}
    for version in rows.select_related("tool").order_by("tool__name"):
        # What stands under a longer group is another source's.
        is_of_group = "." not in version.tool.name.removeprefix(beginning)
        if is_of_group and (name := read_source_name(version, ImportKind(row.kind))):
            found[name] = version
    return found


def read_source_name(version: ToolVersion, kind: ImportKind) -> str:
    """What the source calls the tool; empty: it came from another kind of source, or from none."""
    manifest = version.view
    if manifest.document.get("implementation", {}).get("kind") != _KINDS[kind]:
        return ""
    return str(manifest.origin.get("operation" if kind == ImportKind.OPENAPI else "tool", ""))


def taking_document_turn(data: bytes, tenant_id: UUID) -> AbstractContextManager[None]:
    """A tenant has one large document read, and drafts made of it, at a time."""
    if len(data) <= MAX_SMALL_BYTES:
        return nullcontext()
    return taking_turn("document", tenant_id, busy="Another document is being read.")


def read_source_document(data: bytes) -> OpenApiDocument:
    """Raises :class:`SourceUnfit`."""
    try:
        return read_document(data)
    except DocumentUnfit as error:
        raise unfit_document(error) from error


def make_drafts(
    row: Import,
    names: Sequence[str],
    brought: Mapping[str, ToolVersion] | None = None,
    document: OpenApiDocument | None = None,
) -> tuple[list[ImportDraft], list[dict[str, str]]]:
    """Drafts of what the source calls so, however many, and of which none can be made. ``brought``: of :func:`find_brought`, where it
    has been asked already; ``document``: what is kept, of a source that is one, read before anything was locked. Raises
    :class:`SourceUnfit` where none can at all.
    """
    brought = find_brought(row) if brought is None else brought
    kept: dict[str, ImportDraft] = {each["name"]: each for each in row.drafts}
    if row.kind == ImportKind.OPENAPI:
        assert document is not None
        return _make_of_document(row, names, brought, kept, document)
    return _make_of_listing(row, names, brought, kept), []


def _check_ids(names: Iterable[str], derive_id: Callable[[str], str]) -> None:
    """Two names that would be one tool are found before any of them is looked at with what there was."""
    ids: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        ids.setdefault(derive_id(name), []).append(name)
    if collisions := find_id_collisions(ids):
        raise SourceUnfit(
            " ".join(each.message for each in collisions), remedy="Bring one of them, or bring them into two groups."
        )


def _make_of_document(
    row: Import,
    names: Sequence[str],
    brought: Mapping[str, ToolVersion],
    kept: dict[str, ImportDraft],
    document: OpenApiDocument,
) -> tuple[list[ImportDraft], list[dict[str, str]]]:
    found_made = {name: _find_kept_made(row, name, version) for name, version in brought.items()}
    earlier = {name: each["made"] for name, each in found_made.items() if each is not None}
    earlier |= {name: draft["made"] for name, draft in kept.items()}
    now = row.source.get("choices")
    rechosen = {name for name, each in found_made.items() if each is not None and each.get("choices", now) != now}
    existing = [kept[name]["document"] if name in kept else version.manifest for name, version in brought.items()]
    existing += [draft["document"] for name, draft in kept.items() if name not in brought]
    drafts: list[ImportDraft] = []
    refusals: list[dict[str, str]] = []
    try:
        entries = {each.id: each for each in document.select([*names])}
        _check_ids(entries, lambda name: f"{row.group}.{brought_operations.derive_operation_segment(entries[name])}")
        ordered = list(entries.values())
        for start in range(0, len(ordered), brought_tools.MAX_CHOSEN):
            found = brought_operations.draft_operations(
                document,
                ordered[start : start + brought_tools.MAX_CHOSEN],
                row.group,
                build_choices(row.source, row.group),
                existing,
                earlier,
                rechosen=rechosen,
            )
            for each in found.drafts:
                name = str(each.made["origin"]["operation"])
                notes = [{"pointer": note.pointer, "message": note.message} for note in each.diagnostics]
                drafts.append(
                    settle_draft(row, name, each.document, brought.get(name), each.made, notes, kept.get(name))
                )
            refusals += [
                {"name": each.operation, "pointer": each.pointer, "message": each.message, "remedy": each.remedy}
                for each in found.refusals
            ]
    except DocumentUnfit as error:
        raise unfit_document(error) from error
    return drafts, refusals


def _make_of_listing(
    row: Import, names: Sequence[str], brought: Mapping[str, ToolVersion], kept: dict[str, ImportDraft]
) -> list[ImportDraft]:
    drafts = []
    pinned = PinnedListings()
    try:
        listing = Listing.from_bytes(row.unpack_content())
        source = build_brought_source(row, listing.protocol)
        if row.kind == ImportKind.REMOTE:
            brought_remotes.check_argument_headers(listing, names)
        _check_ids([*names, *kept], lambda name: f"{row.group}.{derive_hub_segment(name)}")
        for name in dict.fromkeys(names):
            version, draft = brought.get(name), kept.get(name)
            then = draft["made"] if draft else _find_made(row, name, version)
            before = draft["document"] if draft else version.manifest if version else None
            earlier = pinned.read(version) if version is not None and draft is None else None
            [made] = brought_tools.draft_tools(listing, source, [name])
            [found] = brought_tools.draft_tools(
                listing, source, [name], [before] if before else [], earlier, {name: then} if then else {}
            )
            kept_made = brought_merges.pick_merged(made.document)
            drafts.append(settle_draft(row, name, found.document, version, kept_made, [], draft))
    except brought_tools.CannotBring as error:
        raise SourceUnfit(str(error)) from error
    except ListingUnfit as error:
        raise SourceUnfit(str(error)) from error
    return drafts


def _find_made(row: Import, name: str, version: ToolVersion | None) -> dict[str, Any] | None:
    """What the source alone made of the version that is there, or last before it of one that was submitted here."""
    found = _find_kept_made(row, name, version)
    return None if found is None else dict(found["made"])


def _find_kept_made(row: Import, name: str, version: ToolVersion | None) -> dict[str, Any] | None:
    """The same with the choices beside it, where the source is a document."""
    if version is None:
        return None
    now = Version.parse(
        version.version
    )  # which may have come by another way, with what a person wrote into one from here
    made = [(Version.parse(each["version"] or _BEFORE_ALL), each) for each in reversed(list_made(row, name))]
    return max((pair for pair in made if pair[0] <= now), key=itemgetter(0), default=(now, None))[1]


def list_made(row: Import, name: str) -> list[dict[str, Any]]:
    """What the source alone made of each version of a tool that was submitted here, the newest last: a later one may be refused or
    yanked, and the one before it is changed again."""
    if name in row.made.get("operations", {}):  # as it was kept at first: without its version
        return [{"version": "", "made": row.made["operations"][name], "choices": row.made["choices"]}]
    return list(row.made.get("tools", {}).get(name, []))


def settle_draft(
    row: Import,
    name: str,
    document: dict[str, Any],
    version: ToolVersion | None,
    made: dict[str, Any],
    notes: Iterable[dict[str, str]],
    kept: ImportDraft | None,
) -> ImportDraft:
    """The draft with the number that its changes need. Numbers that are taken are passed over."""
    number, changes = brought_tools.FIRST_VERSION, list[ManifestChange]()
    if version is not None and version.tool.name != document["id"]:
        raise SourceUnfit(
            f"{name[:100]} would be {document['id']}, and was brought as {version.tool.name}.",
            remedy="Bring the source into the group that it was brought into before.",
        )
    if version is not None:
        number = version.version
        changes = compare_manifests(version.manifest, document | {"version": number})
    if version is None or changes:
        number = brought_tools.raise_version(number, compute_needed_bump(changes)) if changes else number
        number = _find_free_number(row, str(document["id"]), number)
    document = document | {"version": number}
    return ImportDraft(
        id=str(document["id"]),
        name=name,
        document=document,
        base=version.version if version else "",
        changes=[each.to_json() for each in changes],
        notes=list(notes),
        proposed={each: str(made[each]) for each in ("side_effect", "safety_class")},
        reason=kept["reason"] if kept else "",
        chosen_by=kept["chosen_by"] if kept else "",
        edited_by=kept["edited_by"] if kept else [],
        made=made,
    )


def _find_free_number(row: Import, id: str, number: str) -> str:
    rows = ToolVersion.objects.filter(tool__tenant_id=row.tenant_id, tool__name=id)
    taken = set(rows.values_list("version", flat=True))
    while number in taken:
        number = brought_tools.raise_version(number, "patch")
    return number


def is_otherwise(draft: ImportDraft) -> bool:
    """Whether it is a new tool, or one that is not as it was."""
    return not draft["base"] or any(not str(each["pointer"]).startswith(_NOT_OF_A_TOOL) for each in draft["changes"])


def compute_draft_digest(drafts: Sequence[ImportDraft]) -> str:
    """Of what somebody reads before they save or submit it."""
    return compute_digest([{"document": each["document"], "reason": each["reason"]} for each in drafts])


def find_base(row: Import, draft: ImportDraft) -> ToolVersion | None:
    if not draft["base"]:
        return None
    rows = ToolVersion.objects.filter(tool__tenant_id=row.tenant_id, tool__name=draft["id"], version=draft["base"])
    return rows.select_related("tool").first()


def unfit_document(error: DocumentUnfit) -> SourceUnfit:
    return SourceUnfit(
        error.message,
        details={"findings": [{"pointer": error.pointer or "/", "message": error.message, "fix": error.remedy}]},
        remedy=error.remedy,
    )

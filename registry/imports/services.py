"""Imports: how tools of others are brought, from the source to the versions that wait for their review.

The makers of drafts are those of ``unitools bring``. Nothing is chosen beforehand; what is chosen becomes drafts, which people
correct and submit, and what was submitted is an ordinary version. The source is read again by the same service: what it says otherwise
is proposed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from access.models import Tenant
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.imports import ReadSource, RemovedImport
from kernel.database.connections import database_time
from kernel.problems import Conflict, NotFound, SchemaInvalid
from registry.imports import drafts as import_drafts
from registry.imports.models import Import, ImportKind, ImportState
from registry.imports.problems import ImportUnready, TooManyImports
from registry.imports.remote_lists import fetch_remote_list
from registry.imports.sources import (
    read_document_choices,
    read_group,
    read_package_source,
    read_reach,
    read_remote_credentials,
)
from registry.secrets.services import MIN_CHARACTERS
from registry.versions.manifest_checks import check_shape
from unitools.brought_npm import derive_npm_group
from unitools.brought_operations import derive_service_group
from unitools.brought_remotes import derive_remote_group
from unitools.brought_tools import MAX_CHOSEN, derive_group
from unitools.npm_names import PREFIX, is_of_npm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from kernel.principal import Principal
    from registry.imports.drafts import ImportDraft
    from registry.imports.known_sources import EffectChoice
    from unitools.mcp_listings import Listing
    from unitools.openapi.documents import OpenApiDocument

MAX_IMPORTS = 200
MAX_SUMMARY_CHARS = 300
MAX_REASON_CHARS = 500


def import_document(
    *,
    data: bytes,
    group: str = "",
    servers: Sequence[str] = (),
    secrets: Sequence[str] = (),
    idempotency_header: str = "",
    wanted: Sequence[str] = (),
    effects: Mapping[str, EffectChoice] | None = None,
    by: Principal,
) -> Import:
    """Read an OpenAPI document. ``wanted``: operations of which drafts are made at once, beside those that were brought before."""
    choices = read_document_choices(
        servers=list(servers), secrets=list(secrets), idempotency_header=idempotency_header.strip()
    )
    with import_drafts.taking_document_turn(data, by.tenant_id):
        document = import_drafts.read_source_document(data)
        group = read_group(group or derive_service_group(document.title))
        offered = _list_operations(document)
        source: dict[str, Any] = {"title": document.title, "version": document.version, "choices": choices}
        source["unread"] = _list_unread(document)  # which stays as long as the document does
        with transaction.atomic():
            row = _open(ImportKind.OPENAPI, group, source | keep_effects(effects), by=by)
            return _keep_content(row, data, document.digest, offered, wanted, document=document, by=by)


def _list_unread(document: OpenApiDocument) -> list[dict[str, str]]:
    """Of what the document has and does not let be read."""
    return [
        {"name": name, "pointer": part.pointer, "message": part.message, "remedy": part.remedy}
        for name, part in document.unread.list_named()
    ]


def _list_operations(document: OpenApiDocument) -> list[dict[str, Any]]:
    return [
        {
            "name": each.id,
            "place": each.place,
            "effect": "Read" if each.method in ("GET", "HEAD") else "Write",
            "tags": each.tags[:10],
            "text": each.summary.strip().partition("\n")[0][:MAX_SUMMARY_CHARS],
        }
        for each in document.operations.values()
    ]


def import_remote(
    *,
    url: str,
    group: str = "",
    secrets: Sequence[str] = (),
    values: Mapping[str, str] | None = None,
    wanted: Sequence[str] = (),
    effects: Mapping[str, EffectChoice] | None = None,
    by: Principal,
) -> Import:
    """Ask a server somewhere else for its list. ``values`` of secrets are sent with that and kept nowhere."""
    credentials = read_remote_credentials(list(secrets))
    values = values or {}
    if {name for name, value in values.items() if value} - {each["secret"] for each in credentials}:
        raise SchemaInvalid.at(
            "/token", "Name the credential that is sent with the token; without one it would not be sent."
        )
    if any(0 < len(values.get(each["secret"], "")) < MIN_CHARACTERS for each in credentials):
        raise SchemaInvalid.at("/token", f"A secret has at least {MIN_CHARACTERS} characters.")
    listing = fetch_remote_list(url, credentials, values, by.tenant_id)
    group = read_group(group or derive_remote_group(url))
    return import_remote_list(
        url=url, credentials=credentials, group=group, listing=listing, wanted=wanted, effects=effects, by=by
    )


@transaction.atomic
def import_remote_list(
    *,
    url: str,
    credentials: Sequence[Mapping[str, str]],
    group: str,
    listing: Listing,
    wanted: Sequence[str] = (),
    candidates: Sequence[str] | None = None,
    effects: Mapping[str, EffectChoice] | None = None,
    by: Principal,
) -> Import:
    """Keep what a server somewhere else lists. ``candidates``: as of :func:`propose_drafts`."""
    source = {"url": url, "credentials": [dict(each) for each in credentials]} | keep_effects(effects)
    row = _open(ImportKind.REMOTE, group, source, by=by)
    return _keep_content(
        row, listing.to_bytes(), listing.digest, list_offered(listing), wanted, candidates=candidates, by=by
    )


@transaction.atomic
def import_package(
    *,
    package: str,
    version: str = "",
    group: str = "",
    constraints: Sequence[str] = (),
    script: str = "",
    arguments: Sequence[str] = (),
    environment: Sequence[str] = (),
    secrets: Sequence[str] = (),
    hosts: Sequence[str] = (),
    keeps: str = "",
    programs: Sequence[str] = (),
    trees: Sequence[str] = (),
    browser: bool = False,
    lock: Sequence[str] = (),
    wanted: Sequence[str] = (),
    effects: Mapping[str, EffectChoice] | None = None,
    by: Principal,
) -> Import:
    """Have a worker start the server of a package in a box, to see what it lists. The page waits for it. ``secrets``: names of
    what it finds in its environment, whose values each tenant sets later; ``lock``: the lines of a
    package of npm (unitools.npm_locks)."""
    source = read_package_source(
        package=package.strip(),
        version=version.strip(),
        constraints=list(constraints),
        script=script.strip(),
        arguments=list(arguments),
        environment=list(environment),
        secrets=list(secrets),
        lock=list(lock),
        reach=read_reach(hosts=hosts, keeps=keeps, programs=programs, trees=trees, browser=browser),
    )
    name = str(source["package"])
    group = read_group(
        group or (derive_npm_group(name.removeprefix(PREFIX)) if is_of_npm(name) else derive_group(name))
    )
    row = _open(ImportKind.PACKAGE, group, source | keep_effects(effects), by=by)
    row.state, row.wanted = ImportState.LISTING, list(wanted)
    row.failure, row.progress, row.attempt, row.worker = {}, [], 0, ""
    if row.lease_until:  # whoever was at it has lost it
        row.lease_until = min(row.lease_until, database_time())
    _save(row, "wanted", "attempt")
    return row


def keep_effects(effects: Mapping[str, EffectChoice] | None) -> dict[str, Any]:
    """Effects that new drafts get in place of the proposed ones, each with its reason."""
    return {"effects": {name: choice._asdict() for name, choice in effects.items()}} if effects else {}


def _open(kind: ImportKind, group: str, source: dict[str, Any], *, by: Principal) -> Import:
    """The import of the group, new or as it was; its row is locked."""
    Tenant.objects.select_for_update(no_key=True).get(pk=by.tenant_id)
    row = Import.objects.select_for_update().filter(tenant_id=by.tenant_id, group=group).first()
    if row is None:
        if Import.objects.filter(tenant_id=by.tenant_id).count() >= MAX_IMPORTS:
            raise TooManyImports(f"There are {MAX_IMPORTS} imports already.")
        return Import(tenant_id=by.tenant_id, kind=kind, group=group, source=source, started_by=by.id)
    if row.kind != kind:
        raise Conflict(
            f"Another kind of source is brought under {group} already.",
            details={
                "findings": [{"pointer": "/group", "message": "Another kind of source is brought under it already."}]
            },
            remedy="Choose another group.",
        )
    row.source, row.started_by = source, by.id
    return row


def _save(row: Import, *changed: str) -> None:
    """A new one, or what beside the source was changed of one that was there."""
    if row._state.adding:
        row.save(force_insert=True)
        return
    always = ("source", "started_by", "state", "failure", "progress", "lease_until", "worker", "changed_at")
    row.save(update_fields=[*always, *changed])


def list_offered(listing: Listing) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, entry in sorted(listing.tools.items()):
        hints = entry.get("annotations")
        reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True
        text = str(entry.get("description") or entry.get("title") or "").strip().partition("\n")[0]
        found.append(
            {
                "name": name,
                "place": "",
                "effect": "Read" if reads else "Write",
                "tags": [],
                "text": text[:MAX_SUMMARY_CHARS],
            }
        )
    return found


def _keep_content(
    row: Import,
    data: bytes,
    digest: str,
    offered: list[dict[str, Any]],
    wanted: Sequence[str],
    *,
    candidates: Sequence[str] | None = None,
    document: OpenApiDocument | None = None,
    by: Principal,
) -> Import:
    """What the source says now, and drafts of what it says otherwise than the catalogue has it."""
    row.pack_content(data)
    row.digest, row.offered, row.state, row.read_at = digest, offered, ImportState.READ, database_time()
    row.failure, row.progress, row.wanted, row.refusals, row.worker = {}, [], [], [], ""
    propose_drafts(row, wanted, candidates=candidates, document=document)
    _save(row, "content", "digest", "offered", "wanted", "drafts", "unproposed", "refusals", "read_at")
    evidence.record(
        kind=Kind.IMPORT_READ,
        subject=row.wire_id,
        actor=by,
        data=ReadSource(
            source=str(row.kind), group=row.group, name=row.name[:300], digest=digest, offered=len(offered)
        ),
    )
    return row


def keep_listing(row: Import, listing: Listing, *, by: Principal) -> Import:
    """What the server of a package lists, as a worker has seen it in a box."""
    return _keep_content(row, listing.to_bytes(), listing.digest, list_offered(listing), row.wanted, by=by)


def propose_drafts(
    row: Import,
    wanted: Sequence[str],
    *,
    candidates: Sequence[str] | None = None,
    document: OpenApiDocument | None = None,
) -> None:
    """Drafts of what is wanted, of what was drafted before, and of those ``candidates`` that are otherwise now: None, of all that were
    brought, as many as can be submitted at once. ``document``: as of :func:`registry.imports.drafts.make_drafts`.
    """
    there = {each["name"] for each in row.offered}
    asked = [each["name"] for each in row.drafts] + list(wanted)
    brought = import_drafts.find_brought(row)
    names = [
        each for each in dict.fromkeys([*asked, *(brought if candidates is None else candidates)]) if each in there
    ]
    row.unproposed = 0
    if not names:
        row.drafts = []
        return
    made, row.refusals = import_drafts.make_drafts(row, names, brought, document)
    known = {each["name"] for each in row.drafts}
    for draft in made:
        if (
            draft["name"] not in known
            and not draft["base"]
            and (choice := row.source.get("effects", {}).get(draft["name"]))
        ):
            draft["document"] |= {each: choice[each] for each in ("side_effect", "safety_class")}
            draft["reason"], draft["chosen_by"] = choice["reason"], row.started_by
    row.drafts = [each for each in made if each["name"] in asked]
    others = [each for each in made if each["name"] not in asked and import_drafts.is_otherwise(each)]
    room = max(0, MAX_CHOSEN - len(row.drafts)) if candidates is None else len(candidates)
    row.drafts, row.unproposed = [*row.drafts, *others[:room]], len(others[room:])


def find_gone(row: Import) -> list[str]:
    """What was brought and is not there any more, by the source's name."""
    there = {each["name"] for each in row.offered}
    return sorted(name for name in import_drafts.find_brought(row) if name not in there)


def lock_import(import_id: UUID, *, by: Principal) -> Import:
    row = Import.objects.select_for_update().filter(pk=import_id, tenant_id=by.tenant_id).first()
    if row is None:
        raise NotFound("There is no such import.")
    return row


def check_read(row: Import) -> None:
    if row.state != ImportState.READ:
        raise ImportUnready("What the server lists is not known yet.")


def choose_tools(*, import_id: UUID, names: Sequence[str], by: Principal) -> Import:
    """Add drafts of these to those that there are."""
    data = _find_document(import_id, by=by)
    with import_drafts.taking_document_turn(data, by.tenant_id):  # so that nobody waits for the row meanwhile
        document = import_drafts.read_source_document(data) if data else None
        with transaction.atomic():
            return _add_drafts(lock_import(import_id, by=by), names, document)


def _find_document(import_id: UUID, *, by: Principal) -> bytes:
    """The document that is kept; empty where the source is none, or not read yet."""
    kept = Import.objects.filter(pk=import_id, tenant_id=by.tenant_id, kind=ImportKind.OPENAPI, state=ImportState.READ)
    row = kept.only("content").first()
    return row.unpack_content() if row is not None else b""


def _add_drafts(row: Import, names: Sequence[str], document: OpenApiDocument | None) -> Import:
    check_read(row)
    if document is not None and row.digest != document.digest:
        raise Conflict("The document was read anew meanwhile.", remedy="Look at what it has now, and choose again.")
    there = {each["name"] for each in row.offered}
    if unknown := [name for name in names if name not in there]:
        raise SchemaInvalid.at("/names", f"The source has no {', '.join(unknown[:5])[:200]}.")
    known = {each["name"] for each in row.drafts}
    more = [name for name in dict.fromkeys(names) if name not in known]
    if not more:
        raise SchemaInvalid.at("/names", "Choose at least one that is no draft yet.")
    if len(known) + len(more) > MAX_CHOSEN:
        raise SchemaInvalid.at(
            "/names",
            f"At most {MAX_CHOSEN} are brought at once; there are {len(known)} drafts, and you chose {len(more)} more.",
        )
    made, row.refusals = import_drafts.make_drafts(row, more, document=document)
    row.drafts = [*row.drafts, *made]
    row.save(update_fields=["drafts", "refusals", "changed_at"])
    return row


def find_draft(row: Import, tool: str) -> ImportDraft:
    found: ImportDraft | None = next((each for each in row.drafts if each["id"] == tool), None)
    if found is None:
        raise NotFound("There is no such draft.")
    return found


@transaction.atomic
def edit_draft(*, import_id: UUID, tool: str, document: Any, reason: str, by: Principal, seen: str = "") -> Import:
    """Change a draft. Another effect than the source proposes needs a reason, which is kept as evidence with the submission. ``seen``:
    the digest of the draft that they read, so that they write over nothing else."""
    row = lock_import(import_id, by=by)
    draft = find_draft(row, tool)
    if seen and seen != import_drafts.compute_draft_digest([draft]):
        raise Conflict(
            "The draft was changed after you opened it.",
            remedy="Open it in another tab to read what it says now. Save again to have it as you typed it.",
        )
    reason = reason.strip()
    if not isinstance(document, dict) or document.get("id") != tool:
        raise SchemaInvalid.at("/document", f"The draft is the manifest of {tool}, and its id stays.")
    check_shape(document)
    if "origin" not in document or document["implementation"].get("kind") != draft["made"]["implementation"]["kind"]:
        raise SchemaInvalid.at("/document", "The manifest does not say any more where the tool comes from.")
    if document.get("side_effect") != draft["proposed"]["side_effect"] and not reason:
        raise SchemaInvalid.at(
            "/reason", "Write why the effect is another one than the source proposes: whoever reviews it reads that."
        )
    if len(reason) > MAX_REASON_CHARS:
        raise SchemaInvalid.at("/reason", f"A reason has at most {MAX_REASON_CHARS} characters.")
    chosen = document.get("version") if document.get("version") != draft["document"]["version"] else None
    settled = import_drafts.settle_draft(
        row, draft["name"], document, import_drafts.find_base(row, draft), draft["made"], draft["notes"], draft
    )
    if (document["side_effect"], reason) != (draft["document"]["side_effect"], draft["reason"]):
        settled["chosen_by"] = by.id
    if document != draft["document"]:
        settled["edited_by"] = sorted({*draft["edited_by"], by.id})
    settled["reason"] = reason
    settled["proposed"] = draft["proposed"]
    if chosen is not None:
        settled["document"]["version"] = chosen
    row.drafts = [settled if each["id"] == tool else each for each in row.drafts]
    row.save(update_fields=["drafts", "changed_at"])
    return row


@transaction.atomic
def remove_draft(*, import_id: UUID, tool: str, by: Principal) -> Import:
    row = lock_import(import_id, by=by)
    find_draft(row, tool)
    row.drafts = [each for each in row.drafts if each["id"] != tool]
    row.save(update_fields=["drafts", "changed_at"])
    return row


@transaction.atomic
def remove_import(*, import_id: UUID, by: Principal) -> None:
    """Forget the source and the drafts. Versions that were made of it stay."""
    row = lock_import(import_id, by=by)
    evidence.record(
        kind=Kind.IMPORT_REMOVED,
        subject=row.wire_id,
        actor=by,
        data=RemovedImport(group=row.group, digest=row.digest, drafts=len(row.drafts)),
    )
    row.delete()

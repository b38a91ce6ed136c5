"""Previews: what publishing a draft would change, and whether what was found out is still true.

A preview is the simulation over past calls and the exact analysis, kept with the draft. It is bound to the draft's digest
and to the versions that were in force, and counts no more once any of them is another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_noop

from access.models import PolicyState, PolicyVersion
from access.policies.cache import compiled_policy
from access.policies.compiler import BUILTIN, BUILTIN_DOCUMENT, compile_policy
from access.policies.impact.analysis import SILENT_DOCUMENT, Analysis, analyse_change
from access.policies.impact.simulation import DEFAULT_CALLS, MAX_CALLS, simulate_calls
from evidence.archives.leaves import restore_leaf
from evidence.kinds import BEGINS
from evidence.models import Fact
from kernel.canonical import compute_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from uuid import UUID

    from access.policies.compiler import CompiledPolicy
    from access.policies.impact.simulation import Row

__all__ = ["DEFAULT_CALLS", "MAX_CALLS", "build_preview", "compare_documents", "compute_preview_digest", "why_stale"]

CHUNK = 5_000


def in_force(tenant_id: UUID | None) -> PolicyVersion | None:
    return PolicyVersion.objects.of_owner(tenant_id).filter(state=PolicyState.IN_FORCE).first()


def layers_in_force(tenant_id: UUID) -> tuple[CompiledPolicy, ...]:
    """What decides over calls in a tenant now: the hub's policy, or the one that is built in, then the tenant's."""
    hub, own = in_force(None), in_force(tenant_id)
    return (compiled_policy(hub.pk) if hub else BUILTIN, *([compiled_policy(own.pk)] if own else []))


def compute_basis(version: PolicyVersion) -> dict[str, str]:
    """Digests of what a preview depends on: the draft, what it would follow, and for a tenant what binds it from above."""
    owners = {"own": version.tenant_id} | ({} if version.tenant_id is None else {"hub": None})
    found = {name: in_force(owner) for name, owner in owners.items()}
    return {"draft": version.digest} | {name: row.wire_id if row else "" for name, row in found.items()}


def why_stale(version: PolicyVersion) -> str:
    """A sentence, or nothing when the preview may be relied on."""
    if not version.simulation:
        return gettext_noop("The impact of this draft was not previewed.")
    was, now = version.simulation.get("basis", {}), compute_basis(version)
    if was.get("draft") != now["draft"]:
        return gettext_noop("The draft was changed after its impact was previewed.")
    return (
        ""
        if was == now
        else gettext_noop("Another policy came into force after the impact of this draft was previewed.")
    )


def compute_preview_digest(version: PolicyVersion) -> str:
    """Of what somebody reads before they publish: the draft, and what its preview found. Another preview has another."""
    return compute_digest({"draft": version.digest, "preview": version.simulation})


def document_before(version: PolicyVersion) -> dict[str, Any]:
    """What the version would follow: what is in force for its owner, or what holds without it."""
    before = in_force(version.tenant_id)
    if before is not None:
        document: dict[str, Any] = before.document
        return document
    return BUILTIN_DOCUMENT if version.tenant_id is None else SILENT_DOCUMENT


def compare_documents(before: dict[str, Any], after: dict[str, Any]) -> Analysis:
    return analyse_change(before, after)


def past_calls(tenant_id: UUID | None, calls: int) -> Iterator[Row]:
    """Begin facts, newest first; of every tenant for the hub. Read in pieces, so that no cursor is held."""
    rows = Fact.objects.filter(kind__in=BEGINS).order_by("-id")
    if tenant_id is not None:
        rows = rows.filter(tenant_id=tenant_id)
    last = None
    while calls > 0:
        piece = rows if last is None else rows.filter(pk__lt=last)
        columns = piece.values_list("pk", "invocation_id", "tenant_id", "leaf", "leaf_hash", "seal__leaf_index")
        found = list(columns[: min(calls, CHUNK)])
        if not found:
            return
        for _, invocation, tenant, leaf, hash, index in found:
            yield invocation, tenant, restore_leaf(leaf, tenant, index, hash)
        last, calls = found[-1][0], calls - len(found)


def layers_with(draft: CompiledPolicy, tenant_id: UUID | None) -> dict[UUID, Sequence[CompiledPolicy]] | None:
    """For a draft of the hub: each tenant's layers that has a policy of its own in force."""
    if tenant_id is not None:
        return None
    rows = PolicyVersion.objects.filter(state=PolicyState.IN_FORCE, tenant__isnull=False)
    return {owner: (draft, compiled_policy(pk)) for pk, owner in rows.values_list("pk", "tenant_id") if owner}


def layers_under(version: PolicyVersion) -> Callable[[UUID], Sequence[CompiledPolicy]]:
    """By tenant: what would decide if this version were in force."""
    draft = compile_policy(version.document, version.label, version.digest)
    above = in_force(None) if version.tenant_id is not None else None
    hub = compiled_policy(above.pk) if above else BUILTIN
    others = layers_with(draft, version.tenant_id)
    own: Sequence[CompiledPolicy] = (hub, draft) if others is None else (draft,)
    return lambda tenant: own if others is None else others.get(tenant, own)


def build_preview(version: PolicyVersion, *, calls: int) -> dict[str, Any]:
    """The simulation over the last calls and the analysis, as they are kept with the draft."""
    basis = compute_basis(version)
    done = simulate_calls(past_calls(version.tenant_id, calls), layers_under(version))
    analysis = compare_documents(document_before(version), version.document)
    return done.to_json() | {
        "basis": basis,
        "asked": calls,
        "analysis": analysis.to_json() | {"summary": analysis.summary()},
    }

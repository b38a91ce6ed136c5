"""Erasure of calls: what is kept of a person's calls, and how it goes.

Calls, chains, agent runs, what they left and the files that they wrote. Rows of calls stay, without what could tell whose they
were: a keyed hash stays only as long as an Idempotency-Key that belongs to it, so that the same call sent again is answered (410)
and not made.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, Q

from evidence.erasures.holders import ERASED
from evidence.models import Fact, Snapshot
from evidence.services import erase_free_text
from invocations.agent_runs.models import AgentRun, AgentRunState
from invocations.agent_runs.services import cancel_run
from invocations.artifacts.models import Artifact, ArtifactContent
from invocations.chains.models import CHAIN_OPEN, Chain
from invocations.chains.services import cancel_chain
from invocations.kept_callers import NOBODY
from invocations.models import FINAL, Invocation, State, StoredFile
from invocations.replays.models import Replay, Rerun, What
from invocations.run.cancellation import cancel_call
from invocations.tool_files.models import ToolFiles
from kernel.database.connections import database_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from django.db.models import QuerySet

    from evidence.erasures.holders import ErasureSubject
    from kernel.principal import Principal

CHAIN_KEYS_KEPT = timedelta(hours=24)


def select_calls(who: ErasureSubject) -> QuerySet[Invocation]:
    """Not those that were made after the key was destroyed: they have another."""
    rows = Invocation.objects.filter(tenant_id=who.tenant_id, user_fingerprint=who.subject)
    return rows.filter(Q(values_key=None) | Q(values_key=who.key)) if who.key else rows


def select_chains(who: ErasureSubject) -> QuerySet[Chain]:
    rows = Chain.objects.filter(tenant_id=who.tenant_id, user_fingerprint=who.subject)
    return rows.filter(Q(values_key=None) | Q(values_key=who.key)) if who.key else rows


def select_runs(who: ErasureSubject) -> QuerySet[AgentRun]:
    rows = AgentRun.objects.filter(tenant_id=who.tenant_id, user_fingerprint=who.subject)
    return rows.filter(Q(values_key=None) | Q(values_key=who.key)) if who.key else rows


def select_files(who: ErasureSubject) -> QuerySet[StoredFile]:
    """Those that calls of the person have written. What people have stored is nobody's call."""
    rows = StoredFile.objects.filter(tenant_id=who.tenant_id)
    return rows.filter(subject_key=who.key) if who.key else rows.filter(subject_key__subject=who.subject)


def select_tool_files(who: ErasureSubject) -> QuerySet[ToolFiles]:
    """Those that tools keep of the person alone. What they keep of an agent or a tenant is nobody's."""
    rows = ToolFiles.objects.filter(tenant_id=who.tenant_id)
    return rows.filter(subject_key=who.key) if who.key else rows.filter(subject_key__subject=who.subject)


def select_trial_values(who: ErasureSubject) -> QuerySet[Snapshot]:
    """What the person has written to try versions with, and what those answered."""
    trials = Replay.objects.filter(tenant_id=who.tenant_id, what=What.TRIAL)
    rows = Snapshot.objects.filter(tenant_id=who.tenant_id, invocation_id__in=trials.values("pk"))
    return rows.filter(subject_key=who.key) if who.key else rows.filter(subject_key__subject=who.subject)


def remove_artifacts(rows: QuerySet[Artifact], *, limit: int) -> int:
    """The next of them, and what no other artifact has of their content."""
    found = list(rows.order_by("id").values_list("pk", "content_id", "thumbnail_id")[:limit])
    Artifact.objects.filter(pk__in=[pk for pk, _, _ in found]).delete()
    contents = {each for _, *both in found for each in both if each}
    ArtifactContent.objects.filter(pk__in=contents, artifacts=None, thumbnails=None).delete()
    return len(found)


class CallHolder:
    """The holder of what calls keep (:mod:`evidence.erasures.holders`)."""

    def count(self, who: ErasureSubject) -> Counter[str]:
        calls = select_calls(who)
        chains = select_chains(who)
        values = Snapshot.objects.filter(tenant_id=who.tenant_id)
        runs = select_runs(who)
        of_them = Q(invocation_id__in=calls.values("pk")) | Q(invocation_id__in=chains.values("pk"))
        of_them |= Q(invocation_id__in=runs.values("pk"))
        return +Counter(
            calls=calls.count(),
            chains=chains.count(),
            agent_runs=runs.count(),
            values=values.filter(of_them).count(),
            artifacts=Artifact.objects.filter(invocation__in=calls).count(),
            files=select_files(who).count() + select_tool_files(who).count(),
        )

    def end_open(self, who: ErasureSubject, *, by: Principal) -> bool:
        """Chains are cancelled as a whole, so that what they did is undone, and so are agent runs; other calls each."""
        chains = select_chains(who).filter(state__in=CHAIN_OPEN)
        for pk in chains.filter(cancel_asked_at=None, state="running").values_list("pk", flat=True):
            cancel_chain(chain_id=pk, by=by)
        runs = select_runs(who).filter(state=AgentRunState.RUNNING)
        for pk in runs.filter(cancel_asked_at=None).values_list("pk", flat=True):
            cancel_run(run_id=pk, by=by)
        calls = select_calls(who).exclude(state__in=FINAL)
        for pk in calls.filter(chain_step=None, run_step=None, cancel_asked_at=None).values_list("pk", flat=True):
            cancel_call(invocation_id=pk, by=by)
        return chains.exists() or runs.exists() or calls.exists()

    def remove(self, who: ErasureSubject, *, limit: int) -> Counter[str]:
        gone = Counter[str]()
        gone["files"] = (
            select_files(who).filter(pk__in=list(select_files(who).values_list("pk", flat=True)[:limit])).delete()[0]
        )
        sealed = Exists(Snapshot.objects.filter(invocation_id=OuterRef("pk")))
        left = Exists(Artifact.objects.filter(invocation=OuterRef("pk")))
        kept = list(select_tool_files(who).values_list("pk", flat=True)[:limit])
        gone["files"] += ToolFiles.objects.filter(pk__in=kept).delete()[0]
        to_do = Q(values_key=None) | ~Q(output_digest="") | Q(idempotency_key="") | sealed | left
        calls = list(select_calls(who).filter(to_do).order_by("id").values_list("pk", flat=True)[:limit])
        gone["artifacts"] = remove_artifacts(Artifact.objects.filter(invocation__in=calls), limit=limit)
        words = Fact.objects.of_calls(*calls)
        gone["values"] = _forget_values(calls) + erase_free_text(words, tenant_id=who.tenant_id, erasure=who.erasure)
        if Artifact.objects.filter(invocation__in=calls).exists():
            return +gone  # more than a batch; the calls come up again
        rows = Invocation.objects.filter(pk__in=calls)
        # The program and the account are the person's own, and lead to who it was.
        gone["calls"] = rows.update(
            values_key=who.key, output_digest="", request_id="", sources=[], account_id=None, connection_id=None
        )
        rows.filter(idempotency_key="").update(user_fingerprint="", arguments_fingerprint="")
        chains = list(
            select_chains(who)
            .filter(Q(values_key=None) | Q(idempotency_key="") | sealed)
            .order_by("id")
            .values_list("pk", flat=True)[:limit]
        )
        gone["values"] += _forget_values(chains)
        rows_of_chains = Chain.objects.filter(pk__in=chains)
        gone["chains"] = rows_of_chains.update(values_key=who.key, request_id="")
        rows_of_chains.filter(idempotency_key="").update(user_fingerprint="", plan_fingerprint="")
        rows_of_chains.exclude(state__in=CHAIN_OPEN).update(credential=NOBODY)  # one that is open is undone by it
        runs = list(
            select_runs(who)
            .filter(Q(values_key=None) | Q(idempotency_key="") | sealed)
            .order_by("id")
            .values_list("pk", flat=True)[:limit]
        )
        gone["values"] += _forget_values(runs)
        rows_of_runs = AgentRun.objects.filter(pk__in=runs)
        gone["agent_runs"] = rows_of_runs.update(values_key=who.key, request_id="")
        rows_of_runs.filter(idempotency_key="").update(user_fingerprint="", question_fingerprint="")
        rows_of_runs.exclude(state=AgentRunState.RUNNING).update(credential=NOBODY)
        return +gone


class ReplayHolder:
    """The holder of why calls of the person were run again, and of what they tried versions with as a reviewer. That it was done, and
    what came of it, stays.
    """

    def count(self, who: ErasureSubject) -> Counter[str]:
        return +Counter(
            replays=_replays(Replay.objects.all(), select_calls(who)).count(), values=select_trial_values(who).count()
        )

    def end_open(self, who: ErasureSubject, *, by: Principal) -> bool:
        """They go on: what they keep of a person who was erased is nothing."""
        del who, by
        return False

    def remove(self, who: ErasureSubject, *, limit: int) -> Counter[str]:
        """Of calls that :class:`CallHolder` is through with, so that none is left out when the two take turns."""
        calls = Invocation.objects.filter(tenant_id=who.tenant_id, values_key=who.key)
        found = list(_replays(Replay.objects.exclude(reason=ERASED), calls).order_by("id")[:limit])
        words = Fact.objects.filter(subject__in=[replay.wire_id for replay in found])
        erase_free_text(words, tenant_id=who.tenant_id, erasure=who.erasure)
        rows = Replay.objects.filter(pk__in=[replay.pk for replay in found])
        written = list(select_trial_values(who).values_list("pk", flat=True)[:limit])
        gone = Snapshot.objects.filter(pk__in=written).delete()[0]
        return +Counter(replays=rows.update(reason=ERASED), values=gone)


def _replays(rows: QuerySet[Replay], calls: QuerySet[Invocation]) -> QuerySet[Replay]:
    """Those of one of the calls, and those of a period in which one of them was run again."""
    again = Exists(Rerun.objects.filter(replay=OuterRef("pk"), invocation__in=calls))
    return rows.filter(Q(invocation__in=calls) | Q(again))


def _forget_values(of: Iterable[UUID]) -> int:
    return Snapshot.objects.filter(invocation_id__in=list(of)).delete()[0]


def forget_hashes(*, limit: int = 500) -> int:
    """Of calls whose person was erased the hash goes when their Idempotency-Key is free; returns of how many."""
    now = database_time()
    erased = Q(values_key__destroyed_at__isnull=False) & ~Q(user_fingerprint="")
    calls = Invocation.objects.filter(erased, Q(key_until=None) | Q(key_until__lte=now), state__in=FINAL)
    found = list(calls.values_list("pk", flat=True)[:limit])
    gone = Invocation.objects.filter(pk__in=found).update(
        user_fingerprint="", arguments_fingerprint="", idempotency_key=""
    )
    chains = Chain.objects.filter(erased, finished_at__lte=now - CHAIN_KEYS_KEPT)
    ended = list(chains.values_list("pk", flat=True)[:limit])
    gone += Chain.objects.filter(pk__in=ended).update(
        user_fingerprint="", plan_fingerprint="", idempotency_key="", credential=NOBODY
    )
    runs = AgentRun.objects.filter(erased, finished_at__lte=now - CHAIN_KEYS_KEPT)
    ended = list(runs.values_list("pk", flat=True)[:limit])
    return gone + AgentRun.objects.filter(pk__in=ended).update(
        user_fingerprint="", question_fingerprint="", idempotency_key="", credential=NOBODY
    )


# By age.


def remove_old_values(kinds: tuple[str, ...], tenant_id: UUID, before: datetime, limit: int) -> int:
    """Of calls, chains, agent runs and trials that have ended; what goes on needs its input."""
    found: list[tuple[UUID, UUID]] = []
    for kind in kinds:
        rows = Snapshot.objects.filter(tenant_id=tenant_id, kind=kind, created_at__lt=before)
        found += islice(_of_what_ended(rows, before, page=limit), limit - len(found))
    Snapshot.objects.filter(pk__in=[pk for pk, _ in found]).delete()
    if "output" in kinds:  # a plain digest of a short value could be guessed
        of = [invocation for _, invocation in found]
        Invocation.objects.filter(pk__in=of, state=State.SUCCEEDED).update(output_digest="")
    return len(found)


def _of_what_ended(rows: QuerySet[Snapshot], before: datetime, *, page: int) -> Iterator[tuple[UUID, UUID]]:
    """Ids of the values and of what they belong to, oldest first. In one statement PostgreSQL would read all calls for each page."""
    oldest = rows.order_by("created_at", "pk").values_list("created_at", "pk", "invocation_id")
    values = list(oldest[:page])
    while values:
        of = {invocation for _, _, invocation in values}
        ended = {
            pk
            for model in (Invocation, Chain, AgentRun, Replay)
            for pk in model.objects.filter(pk__in=of, finished_at__lt=before).values_list("pk", flat=True)
        }
        yield from ((pk, invocation) for _, pk, invocation in values if invocation in ended)
        at, last, _ = values[-1]
        values = list(oldest.filter(Q(created_at__gt=at) | Q(pk__gt=last), created_at__gte=at)[:page])


def remove_old_artifacts(tenant_id: UUID, before: datetime, limit: int) -> int:
    return remove_artifacts(Artifact.objects.filter(tenant_id=tenant_id, created_at__lt=before), limit=limit)


def remove_old_files(tenant_id: UUID, before: datetime, limit: int) -> int:
    """Files that calls have written or tools keep, and nobody has changed since. What people store stays."""
    rows = StoredFile.objects.filter(tenant_id=tenant_id, subject_key__isnull=False, changed_at__lt=before)
    gone = StoredFile.objects.filter(pk__in=list(rows.values_list("pk", flat=True)[:limit])).delete()[0]
    kept = ToolFiles.objects.filter(tenant_id=tenant_id, changed_at__lt=before).values_list("pk", flat=True)
    return gone + ToolFiles.objects.filter(pk__in=list(kept[: max(0, limit - gone)])).delete()[0]

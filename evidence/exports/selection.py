"""Selection: the leaves of its range that an export holds.

Those that its query finds, leaf by leaf in the order of the log: an export needs no index, and says nothing of facts that no log has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING

from evidence.archives.leaves import load_leaves
from evidence.log.reader import select_leaves
from evidence.search.engine import build_window, check_own_tenant
from evidence.search.indexer import tags_of_facts
from evidence.search.language import Query, parse
from evidence.search.name_resolution import keyed_hash, names_in
from evidence.search.tags import build_tag_query

if TYPE_CHECKING:
    from uuid import UUID

    from evidence.models import ExportJob, Fact

WINDOW = 1_000
OPENED_WINDOW = 20  # with values, of which one may have megabytes: a piece is in memory as a whole


@dataclass(slots=True)
class SelectedFact:
    index: int
    fact: Fact


def read_query(text: str, tenant_id: UUID) -> Query:
    """The query as it is kept: a person's id in it becomes the keyed hash that facts have."""
    query = parse(text)
    check_own_tenant(query, tenant_id)
    return Query(
        tuple(
            replace(term, value=keyed_hash(tenant_id, term.value)) if term.name == "user" else term
            for term in query.terms
        )
    )


def select_facts(job: ExportJob) -> tuple[list[SelectedFact], int]:
    """What is found among the next leaves, and up to where was looked."""
    upto = min(job.position + (OPENED_WINDOW if job.opens else WINDOW), job.stop)
    rows = select_leaves(job.tenant_id, job.position, upto).filter(tenant_id=job.tenant_id)
    facts = list(rows.select_related("seal"))
    load_leaves(facts)
    if job.query:
        query = parse(job.query)
        asked = build_tag_query(query, names_in(job.tenant_id))
        window = build_window(query, now=job.created_at, zone=UTC)
        tags = tags_of_facts(facts)
        facts = [fact for fact, has in zip(facts, tags, strict=True) if window.holds(fact.pk) and asked.met_by(has)]
    return [SelectedFact(fact.seal.leaf_index, fact) for fact in facts], upto

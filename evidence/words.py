"""Words: in which columns do people write freely, and which of these texts name a person who is erased?

What belongs to a person's calls goes with them (:mod:`evidence.holders`). A grant, a kill switch or a review belongs to nobody's call,
and yet somebody may have written a name into its reason: such a text goes as a whole. Only who asks for the erasure knows the names,
and no row keeps them, so it is done in the transaction that asks. A guard test refuses a column that is neither listed here nor
said to hold no words of people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db.models import Q

from evidence.exports.running import forget_exports
from evidence.holders import ERASED
from evidence.models import Snapshot, SnapshotKind
from evidence.problems import KeyUnavailable, ValuesErased
from evidence.services import open_values
from toolhub.kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from uuid import UUID

LEAST_BYTES = 4  # of a name: what is shorter stands in words that name nobody
_JOINED = "[-.@]"  # within an id: `ann` is not named by `ann-4711`


@dataclass(frozen=True, slots=True)
class Written:
    """A column in which people write freely. ``tenant``: the way to the tenant of a row. ``first``: what must not outlive the text."""

    model: str
    column: str
    tenant: str = "tenant_id"
    first: Callable[[list[UUID]], object] | None = None


WRITTEN = (
    Written("access.Grant", "reason"),
    Written("access.GrantRequest", "purpose"),
    Written("access.GrantRequest", "decision_reason"),
    Written("access.Consent", "purpose"),
    Written("access.Consent", "decision_reason"),
    Written("access.Budget", "reason"),
    Written("access.Halt", "reason"),
    Written("access.PolicyVersion", "note"),
    Written("registry.PublisherKey", "revoke_reason"),
    Written("registry.Tool", "state_reason"),
    Written("registry.ToolVersion", "yank_reason", "tool__tenant_id"),
    Written("registry.Review", "note", "version__tool__tenant_id"),
    Written("registry.Installation", "reason"),
    Written("invocations.Replay", "reason"),
    Written("evidence.ExportJob", "reason"),
    Written("evidence.ExportJob", "query", first=forget_exports),
    Written("evidence.SavedSearch", "name"),
    Written("evidence.SavedSearch", "query"),
    Written("evidence.Erasure", "reason"),
)


class PersonNames:
    """By what others may have written of a person: the id, and what else was given."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(name for name in {each.strip() for each in names} if len(name.encode()) >= LEAST_BYTES)
        ends = rf"(?<![0-9A-Za-z_])(?<![0-9A-Za-z_]{_JOINED})({{}})(?!{_JOINED}?[0-9A-Za-z_])"
        any_of = "|".join(re.escape(name) for name in self.names)
        self._found = re.compile(ends.format(any_of), re.IGNORECASE) if self.names else None

    def stand_in(self, text: str) -> bool:
        return bool(self._found and self._found.search(text))

    def may_stand_in(self, column: str) -> Q:
        """For the database: no fewer rows than :meth:`stand_in` finds."""
        return reduce(or_, (Q(**{f"{column}__icontains": name}) for name in self.names), Q())


def check_names(names: Iterable[str]) -> None:
    if any(len(name.strip().encode()) < LEAST_BYTES for name in names):
        raise SchemaInvalid.at(
            "/names", f"Give names of {LEAST_BYTES} letters or more: shorter ones stand in other words."
        )


def check_names_nobody(reason: str, names: PersonNames) -> None:
    """The reason of an erasure stays when everything else has gone."""
    if names.stand_in(reason):
        raise SchemaInvalid.at("/reason", "Do not name the person here: the reason is kept. A ticket's number will do.")


def _rows(names: PersonNames, tenant_id: UUID) -> Iterator[tuple[Written, list[Any]]]:
    """Of each column the rows that name the person."""
    if not names.names:
        return
    for each in WRITTEN:
        rows = apps.get_model(each.model)._base_manager.filter(
            names.may_stand_in(each.column), **{each.tenant: tenant_id}
        )
        found = [pk for pk, text in rows.values_list("pk", each.column) if names.stand_in(text)]
        if found:
            yield each, found


def _sealed(names: PersonNames, tenant_id: UUID) -> Iterator[Snapshot]:
    """What people have written in facts and names the person. Opened here and shown to nobody."""
    if not names.names:
        return
    sealed = Snapshot.objects.filter(tenant_id=tenant_id, kind=SnapshotKind.WORDS)
    for row in sealed.select_related("subject_key__tenant_key").iterator():
        try:
            words = open_values(row)
        except (ValuesErased, KeyUnavailable):  # nobody reads it any more
            continue
        if any(names.stand_in(str(text)) for text in words.values()):
            yield row


def count_mentions(names: PersonNames, *, tenant_id: UUID) -> int:
    """How many texts name the person."""
    texts = sum(len(found) for _, found in _rows(names, tenant_id))
    return texts + sum(1 for _ in _sealed(names, tenant_id))


def forget_mentions(names: PersonNames, *, tenant_id: UUID) -> int:
    """Take away the texts that name the person; returns how many. What facts commit to stays."""
    texts = 0
    for each, found in _rows(names, tenant_id):
        if each.first:
            each.first(found)
        texts += apps.get_model(each.model)._base_manager.filter(pk__in=found).update(**{each.column: ERASED})
    sealed = [row.pk for row in _sealed(names, tenant_id)]
    return texts + Snapshot.objects.filter(pk__in=sealed).delete()[0]

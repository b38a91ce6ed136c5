"""Free text: the columns in which people write, and which of these texts name a person who is erased.

What belongs to a person's calls goes with them (:mod:`evidence.erasures.holders`). A grant, a kill switch or a review belongs to
nobody's call, and yet somebody may have written a name into its reason: such a text goes as a whole. Only who asks for the erasure
knows the names, and no row keeps them, so it is done in the transaction that asks. A guard test refuses a column that is neither
listed here nor said to hold no words of people.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.apps import apps

from evidence.erasures.holders import ERASED
from evidence.exports.jobs import forget_exports
from evidence.models import Snapshot, SnapshotKind
from evidence.problems import KeyUnavailable, ValuesErased
from evidence.services import open_values, remove_words
from kernel.ids import encode
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from uuid import UUID

BATCH = 500
LEAST_BYTES = 4  # of a name: what is shorter stands in words that name nobody
_JOINED = "[-.@]"  # within an id: `ann` is not named by `ann-4711`


@dataclass(frozen=True, slots=True)
class FreeTextColumn:
    """A column in which people write freely. ``tenant``: the way to the tenant of a row. ``first``: what must not outlive the text.

    ``prefix``: of the rows' ids, where no two rows of somebody may say the same; the id is then said beside :data:`ERASED`.
    """

    model: str
    column: str
    tenant: str = "tenant_id"
    first: Callable[[list[UUID]], object] | None = None
    prefix: str = ""

    def forget(self, pks: list[UUID]) -> int:
        """Take these rows' text away; returns how many."""
        if self.first:
            self.first(pks)
        rows = apps.get_model(self.model)._base_manager
        if not self.prefix:
            return int(rows.filter(pk__in=pks).update(**{self.column: ERASED}))
        return sum(int(rows.filter(pk=pk).update(**{self.column: f"{ERASED} {encode(self.prefix, pk)}"})) for pk in pks)


WRITTEN = (
    FreeTextColumn("access.Grant", "reason"),
    FreeTextColumn("access.GrantRequest", "purpose"),
    FreeTextColumn("access.GrantRequest", "decision_reason"),
    FreeTextColumn("access.Consent", "purpose"),
    FreeTextColumn("access.Consent", "decision_reason"),
    FreeTextColumn("access.Budget", "reason"),
    FreeTextColumn("access.Halt", "reason"),
    FreeTextColumn("access.PolicyVersion", "note"),
    FreeTextColumn("registry.PublisherKey", "revoke_reason"),
    FreeTextColumn("registry.Tool", "state_reason"),
    FreeTextColumn("registry.ToolVersion", "yank_reason", "tool__tenant_id"),
    FreeTextColumn("registry.Review", "note", "version__tool__tenant_id"),
    FreeTextColumn("registry.Installation", "reason"),
    FreeTextColumn("registry.ModelProvider", "reason"),
    FreeTextColumn("registry.ModelPrices", "reason"),
    FreeTextColumn("registry.ModelPrefix", "reason"),
    FreeTextColumn("invocations.Replay", "reason"),
    FreeTextColumn("evidence.ExportJob", "reason"),
    FreeTextColumn("evidence.ExportJob", "query", first=forget_exports),
    FreeTextColumn("evidence.SavedSearch", "name", prefix="qry"),
    FreeTextColumn("evidence.SavedSearch", "query"),
    FreeTextColumn("invocations.SavedView", "name"),
    FreeTextColumn("invocations.SavedView", "slug", prefix="viw"),
    FreeTextColumn("invocations.SavedView", "query"),
    FreeTextColumn("evidence.Erasure", "reason"),
)


class PersonNames:
    """By what others may have written of a person: the id, and what else was given."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(name for name in {each.strip() for each in names} if len(name.encode()) >= LEAST_BYTES)
        ends = rf"(?<![0-9A-Za-z_])(?<![0-9A-Za-z_]{_JOINED})({{}})(?!{_JOINED}?[0-9A-Za-z_])"
        any_of = "|".join(re.escape(_plain(name)) for name in self.names)
        self._found = re.compile(ends.format(any_of)) if self.names else None

    def stand_in(self, text: str) -> bool:
        return bool(self._found and self._found.search(_plain(text)))


def _plain(text: str) -> str:
    """The same for what reads the same in another case, or with its accents written as letters of their own."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def check_names(names: Iterable[str]) -> None:
    if any(len(name.strip().encode()) < LEAST_BYTES for name in names):
        raise SchemaInvalid.at(
            "/names", f"Give names of {LEAST_BYTES} letters or more: shorter ones stand in other words."
        )


def check_names_nobody(reason: str, names: PersonNames) -> None:
    """The reason of an erasure stays when everything else has gone."""
    if names.stand_in(reason):
        raise SchemaInvalid.at("/reason", "Do not name the person here: the reason is kept. A ticket's number will do.")


def _rows(names: PersonNames, tenant_id: UUID) -> Iterator[tuple[FreeTextColumn, list[Any]]]:
    """Of each column the rows that name the person. All are read: of other letters than ASCII not every database knows the cases."""
    if not names.names:
        return
    for each in WRITTEN:
        rows = apps.get_model(each.model)._base_manager.filter(**{each.tenant: tenant_id}).exclude(**{each.column: ""})
        texts = rows.values_list("pk", each.column).iterator()
        found = [pk for pk, text in texts if text and names.stand_in(text)]
        if found:
            yield each, found


def _parts(pks: list[UUID]) -> Iterator[list[UUID]]:
    return (pks[at : at + BATCH] for at in range(0, len(pks), BATCH))


class SealedMentions:
    """What people have written in facts and names the person. Opened here and shown to nobody.

    To open them all takes long. So it is done before the transaction that removes them, which then opens only what has come since:
    a sealed text is never changed.
    """

    def __init__(self, names: PersonNames, *, tenant_id: UUID) -> None:
        self._names, self._tenant_id = names, tenant_id
        self._rows = Snapshot.objects.filter(tenant_id=tenant_id, kind=SnapshotKind.WORDS)
        self._looked_at: set[UUID] = set()
        self.found: list[UUID] = []

    def look(self) -> None:
        """Open what was not opened yet."""
        if not self._names.names:
            return
        news = [pk for pk in self._rows.values_list("pk", flat=True).iterator() if pk not in self._looked_at]
        for pks in _parts(news):
            for row in self._rows.filter(pk__in=pks).select_related("subject_key__tenant_key"):
                if self._stands_in(row):
                    self.found.append(row.pk)
        self._looked_at.update(news)

    def _stands_in(self, row: Snapshot) -> bool:
        try:
            words = open_values(row)
        except (ValuesErased, KeyUnavailable):  # nobody reads it any more
            return False
        return any(self._names.stand_in(str(text)) for text in words.values())

    def forget(self, erasure: str) -> int:
        """Take away what is found; returns how many."""
        return remove_words(self.found, tenant_id=self._tenant_id, erasure=erasure)


def count_mentions(names: PersonNames, *, tenant_id: UUID) -> int:
    """How many texts name the person."""
    sealed = SealedMentions(names, tenant_id=tenant_id)
    sealed.look()
    return sum(len(found) for _, found in _rows(names, tenant_id)) + len(sealed.found)


def forget_mentions(names: PersonNames, sealed: SealedMentions, *, tenant_id: UUID, erasure: str) -> int:
    """Take away the texts that name the person; returns how many. What facts commit to stays."""
    texts = sum(each.forget(found) for each, found in _rows(names, tenant_id))
    sealed.look()
    return texts + sealed.forget(erasure)

"""Fact model: what happened.

A :class:`Fact` is one statement about something that happened, written in the transaction that it bears witness to and
never changed. Its ``leaf`` holds the exact bytes that are hashed; the columns beside it are for queries. A
:class:`Pending` row, written with it, is what the sealer takes up.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.query_utils import DeferredAttribute

from evidence.kinds import AGENT_MAKING, FORGETTING, PAIR, Kind
from evidence.leaves.base import LeafData
from evidence.models.append_only import AppendOnlyModel, AppendOnlyQuerySet
from evidence.packed_leaves import PackedLeafField
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kernel.problems import Problem

D = TypeVar("D", bound=LeafData)
CLOCKS_DIFFER_MS = 86_400_000  # at most, of two machines of a hub


def oldest_fact_id(invocation_ids: Iterable[UUID]) -> UUID:
    """The lowest id that a fact of one of these calls may have: a call is there before its facts, as far as clocks agree.

    So nobody has to look into the months before it. Of an id without a time nothing is known.
    """
    oldest = min((id.int >> 80 if id.version == 7 else 0 for id in invocation_ids), default=0)
    return UUID(int=max(oldest - CLOCKS_DIFFER_MS, 0) << 80)


class ArchivableAttribute(DeferredAttribute):
    """The leaf of a fact, from the archive where the database has it no more.

    ``load_archived``: who knows the archive knows the models, which know nothing of it; the app says it when it is loaded.
    """

    load_archived: ClassVar[Callable[[Fact], bytes]]

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        leaf = super().__get__(instance, cls)
        if instance is None or leaf is None or len(leaf) or instance._state.adding or instance.leaf_problem:
            return leaf
        return type(self).load_archived(instance)

    def __set__(self, instance: Any, value: Any) -> None:  # without it nobody comes here who has the value
        instance.__dict__[self.field.attname] = value


class ArchivableLeafField(PackedLeafField):
    """A packed leaf, which may have left for the archive. For the database a field of bytes like any other."""

    descriptor_class = ArchivableAttribute

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, f"{PackedLeafField.__module__}.{PackedLeafField.__name__}", args, kwargs


class FactQuerySet(AppendOnlyQuerySet):
    def of_calls(self, *invocation_ids: UUID) -> Self:
        """The facts of these calls, from the months in which they can be."""
        return self.filter(invocation_id__in=invocation_ids, id__gte=oldest_fact_id(invocation_ids))


class Fact(AppendOnlyModel):
    """One statement about something that happened."""

    objects = FactQuerySet.as_manager()  # type: ignore[misc]  # as that of its base, with more to ask

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()
    kind = models.CharField(max_length=40, choices=Kind)
    subject = models.CharField(max_length=200)  # what it is about: `soul:tool:…`, `inv_…`, `cns_…`
    invocation_id = models.UUIDField(null=True)
    occurred_at = models.DateTimeField()
    actor_kind = models.CharField(max_length=8)
    actor_id = models.CharField(max_length=64)
    tool = models.CharField(max_length=128, blank=True)
    outcome = models.CharField(max_length=16, blank=True)
    reason = models.CharField(max_length=64, blank=True)
    trace_id = models.CharField(max_length=32, blank=True)
    leaf = ArchivableLeafField()
    leaf_hash = models.BinaryField(max_length=32)
    # Why its leaf cannot be had: it is empty then, and who was to show more than its columns says this.
    leaf_problem: Problem | None = None

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["invocation_id", "kind"],
                condition=Q(kind__in=[str(kind) for kind in PAIR]),
                name="fact_one_begin_one_end",
            ),
            models.CheckConstraint(
                condition=~Q(kind__in=[str(kind) for kind in PAIR]) | Q(invocation_id__isnull=False),
                name="fact_pair_names_its_invocation",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant_id", "-id"], name="fact_newest"),
            models.Index(fields=["invocation_id", "id"], name="fact_of_invocation"),
            models.Index(
                fields=["tenant_id", "kind"],
                name="fact_of_agent_making",
                condition=Q(kind__in=[str(kind) for kind in AGENT_MAKING]),
            ),
            models.Index(
                fields=["tenant_id"],
                name="fact_of_forgetting",
                condition=Q(kind__in=[str(kind) for kind in FORGETTING]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"

    @property
    def wire_id(self) -> str:
        return encode("fct", self.id)

    @property
    def has_archived_leaf(self) -> bool:
        """Whether the database has no leaf of it, and nobody has asked the archive for it yet."""
        leaf = self.__dict__.get("leaf")
        return leaf is not None and not len(leaf) and self.leaf_problem is None

    @property
    def text(self) -> str:
        """Its leaf, for people and programs to read; what is no text, because somebody has changed it, is marked in it."""
        return bytes(self.leaf).decode(errors="replace")

    @property
    def content(self) -> dict[str, Any]:
        """What its leaf says; nothing, when somebody has changed it so that it is no leaf any more."""
        return read_leaf(bytes(self.leaf))

    def read_data(self, cls: type[D]) -> D:
        """What its kind says beside the columns, in its type, or in one that has some of its fields."""
        return cls.from_data(self.content.get("data"))


def read_leaf(leaf: bytes) -> dict[str, Any]:
    try:
        found = json.loads(leaf)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("kind"), str):
        return {}
    return found if all(isinstance(found.get(name, {}), dict) for name in ("data", "actor")) else {}


class Pending(models.Model):
    """A fact that no log holds yet. Written with the fact: ids are handed out before commit, so order alone would skip some."""

    # Facts are never deleted, so the database need not look for one with each row.
    fact = models.OneToOneField(Fact, models.PROTECT, primary_key=True, related_name="pending", db_constraint=False)
    tenant_id = models.UUIDField(db_index=True)

    def __str__(self) -> str:
        return str(self.fact_id)

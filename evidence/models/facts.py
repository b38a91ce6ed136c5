"""Fact model: what happened.

A :class:`Fact` is one statement about something that happened, written in the transaction that it bears witness to and
never changed. Its ``leaf`` holds the exact bytes that are hashed; the columns beside it are for queries. A
:class:`Pending` row, written with it, is what the sealer takes up.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from django.db import models
from django.db.models import Q

from evidence.kinds import AGENT_MAKING, FORGETTING, PAIR, Kind
from evidence.leaves.base import LeafData
from evidence.models.append_only import AppendOnlyModel
from evidence.packed_leaves import PackedLeafField
from kernel.ids import encode, new_id

D = TypeVar("D", bound=LeafData)


class Fact(AppendOnlyModel):
    """One statement about something that happened."""

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
    leaf = PackedLeafField()
    leaf_hash = models.BinaryField(max_length=32)

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

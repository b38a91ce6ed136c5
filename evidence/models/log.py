"""Log models: what facts have been sealed into.

A log is one RFC 6962 tree of a tenant's facts. Rows of these tables are written by the sealer only (:mod:`evidence.log.sealer`).
The tree itself is its tiles; what somebody can hold against the hub is a checkpoint: size and root, signed. The log of
``GLOBAL_LOG`` has no facts: its leaf i is the text of the tenants' checkpoint whose ``global_index`` is i.
"""

from __future__ import annotations

from uuid import UUID

from django.db import models
from django.db.models import Q

from evidence.models.append_only import AppendOnlyModel
from evidence.models.facts import Fact

GLOBAL_LOG = UUID(int=1)


class Log(models.Model):
    """How far a tree has grown. ``frontier``: the hashes that the next leaf needs, 32 bytes each."""

    tenant_id = models.UUIDField(primary_key=True)
    origin = models.CharField(max_length=255, unique=True)
    size = models.BigIntegerField(default=0)
    frontier = models.BinaryField(default=bytes)
    signed_at = models.DateTimeField(null=True)  # its newest checkpoint, the last time: who is alive signs again

    any_type_is_read = True

    def __str__(self) -> str:
        return self.origin


class Seal(AppendOnlyModel):
    """Which leaf of its tenant's log a fact is."""

    fact = models.OneToOneField(Fact, models.PROTECT, primary_key=True, related_name="seal", db_constraint=False)
    tenant_id = models.UUIDField()
    leaf_index = models.BigIntegerField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant_id", "leaf_index"], name="seal_each_index_once")]

    def __str__(self) -> str:
        return f"{self.fact_id} is leaf {self.leaf_index}"


class Tile(models.Model):
    """Up to 256 hashes of a tree, as c2sp.org/tlog-tiles cuts it. ``level`` 0 holds the hashes of leaves."""

    pk = models.CompositePrimaryKey("tenant_id", "level", "n")
    tenant_id = models.UUIDField()
    level = models.SmallIntegerField()
    n = models.BigIntegerField()
    hashes = models.BinaryField()

    any_type_is_read = True

    def __str__(self) -> str:
        return f"tile/{self.level}/{self.n}"


class Checkpoint(models.Model):
    """A tree at one size. Of ``note`` only the signatures below the text may change: signed again, cosigned by a witness."""

    tenant_id = models.UUIDField()
    size = models.BigIntegerField()
    root = models.BinaryField(max_length=32)
    note = models.TextField()
    created_at = models.DateTimeField()
    global_index = models.BigIntegerField(null=True)

    any_type_is_read = True

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "size"], name="checkpoint_each_size_once"),
            models.UniqueConstraint(
                fields=["global_index"],
                condition=Q(global_index__isnull=False),
                name="checkpoint_each_global_index_once",
            ),
        ]
        indexes = [
            models.Index(
                fields=["id"],
                condition=Q(global_index=None) & ~Q(tenant_id=GLOBAL_LOG),
                name="checkpoint_not_yet_global",
            )
        ]

    def __str__(self) -> str:
        return f"checkpoint of {self.tenant_id} at {self.size}"


class LogKey(models.Model):
    """The public half of a signing key: what it has signed can be verified for ever, also when it signs no more."""

    name = models.CharField(max_length=32, primary_key=True)
    public = models.BinaryField(max_length=32)  # Ed25519: signs the text of checkpoints
    clock = models.BinaryField(max_length=32)  # Ed25519: signs the text with the time (cosignature/v1)
    added_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)

    any_type_is_read = True

    def __str__(self) -> str:
        return self.name

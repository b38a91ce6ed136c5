"""Tamper operations: how would somebody with all rights over the database change what it keeps?

Each operation changes, deletes, inserts, reorders, truncates or swaps something at random, as one who has taken the triggers down; it
returns what it did. None of them signs anything: rewrites that are signed again are tried on bundles.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection

from evidence.models import GLOBAL_LOG, Checkpoint, Fact, LogKey, Pending, Seal, Tile
from evidence.packed_leaves import pack_leaf, unpack_leaf
from evidence.verify.merkle import leaf_hash
from kernel.ids import new_id
from tests.support.raw_database import World, columns, put_back, sql

if TYPE_CHECKING:
    import random
    from collections.abc import Callable


def flipped(data: bytes, by: random.Random) -> bytes:
    at = by.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << by.randrange(8))]) + data[at + 1 :]


# Change.


def change_column(world: World) -> None:
    name, value = world.by.choice(
        [
            *[
                (name, f"x{world.by.random()}")
                for name in ("subject", "tool", "outcome", "reason", "trace_id", "actor_id")
            ],
            ("kind", "tool.enabled"),
            ("actor_kind", "agent"),
            ("invocation_id", new_id()),
            ("tenant_id", new_id()),
        ]
    )
    sql(
        f"UPDATE evidence_fact SET {name} = %s WHERE id = %s",
        value[:16] if isinstance(value, str) else value,
        world.seal().fact_id,
    )


def change_time(world: World) -> None:
    fact = world.seal().fact
    sql(
        "UPDATE evidence_fact SET occurred_at = %s WHERE id = %s",
        _moment(fact.occurred_at + timedelta(microseconds=1)),
        fact.pk,
    )


def _moment(value: Any) -> Any:
    return connection.ops.adapt_datetimefield_value(value)


def change_leaf(world: World) -> None:
    fact = world.seal().fact
    sql("UPDATE evidence_fact SET leaf = %s WHERE id = %s", flipped(bytes(fact.leaf), world.by), fact.pk)


def change_packed_leaf(world: World) -> None:
    """A bit of what is stored; not one of those behind the end of the text, which say nothing."""
    fact = world.seal().fact
    leaf = bytes(fact.leaf)
    stored = packed = pack_leaf(leaf)
    while unpack_leaf(stored) == leaf:
        stored = flipped(packed, world.by)
    sql("UPDATE evidence_fact SET leaf = %s WHERE id = %s", stored, fact.pk)


def change_leaf_hash(world: World) -> None:
    fact = world.seal().fact
    sql("UPDATE evidence_fact SET leaf_hash = %s WHERE id = %s", flipped(bytes(fact.leaf_hash), world.by), fact.pk)


def rewrite_fact(world: World) -> None:
    """Text, hash and columns, so that the row fits itself."""
    fact = world.seal().fact
    said = json.loads(bytes(fact.leaf)) | {"subject": "soul:tool:never.was.this"}
    leaf = json.dumps(said, separators=(",", ":"), sort_keys=True).encode()
    sql(
        "UPDATE evidence_fact SET leaf = %s, leaf_hash = %s, subject = %s WHERE id = %s",
        leaf,
        leaf_hash(leaf),
        said["subject"],
        fact.pk,
    )


def rewrite_fact_and_tile(world: World) -> None:
    """The hash in the tile too."""
    seal = world.seal()
    rewrite = bytes(seal.fact.leaf).replace(b"a.b.c", b"a.b.d")
    hash = leaf_hash(rewrite)
    subject = seal.fact.subject.replace("a.b.c", "a.b.d")
    if rewrite == bytes(seal.fact.leaf):
        return change_leaf(world)
    sql(
        "UPDATE evidence_fact SET leaf = %s, leaf_hash = %s, subject = %s WHERE id = %s",
        rewrite,
        hash,
        subject,
        seal.fact_id,
    )
    n, place = divmod(seal.leaf_index, 256)
    tile = Tile.objects.get(tenant_id=seal.tenant_id, level=0, n=n)
    stored = bytes(tile.hashes)
    _write_tile(tile, stored[: place * 32] + hash + stored[(place + 1) * 32 :])
    return None


def _write_tile(tile: Tile, hashes: bytes) -> None:
    sql(
        "UPDATE evidence_tile SET hashes = %s WHERE tenant_id = %s AND level = %s AND n = %s",
        hashes, tile.tenant_id, tile.level, tile.n,
    )  # fmt: skip


def change_tile(world: World) -> None:
    tile = world.tile()
    _write_tile(tile, flipped(bytes(tile.hashes), world.by))


def change_note(world: World) -> None:
    row = world.checkpoint(whole=True)
    at = world.by.randrange(len(row.note))
    other = world.by.choice([letter for letter in "aZ9+/=\n" if letter != row.note[at]])
    sql("UPDATE evidence_checkpoint SET note = %s WHERE id = %s", row.note[:at] + other + row.note[at + 1 :], row.pk)


def change_root(world: World) -> None:
    row = world.checkpoint(whole=True)
    sql("UPDATE evidence_checkpoint SET root = %s WHERE id = %s", flipped(bytes(row.root), world.by), row.pk)


def change_size(world: World) -> None:
    row = world.checkpoint(whole=True)
    sql(
        "UPDATE evidence_checkpoint SET size = %s WHERE id = %s",
        row.size + world.by.choice([5000, -row.size, 7000]),
        row.pk,
    )


def change_global_index(world: World) -> None:
    row = world.checkpoint()
    sql("UPDATE evidence_checkpoint SET global_index = %s WHERE id = %s", world.by.choice([None, 9999, -1]), row.pk)


def change_log(world: World) -> None:
    row = world.log()
    name, value = world.by.choice(
        [
            ("size", row.size + world.by.choice([-1, 1, 300])),
            ("frontier", flipped(bytes(row.frontier), world.by)),
            ("origin", row.origin + "x"),
        ]
    )
    sql(f"UPDATE evidence_log SET {name} = %s WHERE tenant_id = %s", value, row.pk)


def change_key(world: World) -> None:
    row, name = LogKey.objects.get(), world.by.choice(["public", "clock"])
    sql(f"UPDATE evidence_logkey SET {name} = %s WHERE name = %s", flipped(bytes(getattr(row, name)), world.by), row.pk)


# Delete.


def delete_fact(world: World) -> None:
    sql("DELETE FROM evidence_fact WHERE id = %s", world.seal().fact_id)


def delete_seal(world: World) -> None:
    sql("DELETE FROM evidence_seal WHERE fact_id = %s", world.seal().fact_id)


def delete_fact_and_seal(world: World) -> None:
    seal = world.seal()
    sql("DELETE FROM evidence_seal WHERE fact_id = %s", seal.fact_id)
    sql("DELETE FROM evidence_fact WHERE id = %s", seal.fact_id)


def delete_and_close_the_gap(world: World) -> None:
    seal = world.seal()
    delete = (seal.tenant_id, seal.leaf_index)
    sql("DELETE FROM evidence_fact WHERE id = %s", seal.fact_id)
    sql("DELETE FROM evidence_seal WHERE fact_id = %s", seal.fact_id)
    sql("UPDATE evidence_seal SET leaf_index = -leaf_index WHERE tenant_id = %s AND leaf_index > %s", *delete)
    sql("UPDATE evidence_seal SET leaf_index = -leaf_index - 1 WHERE tenant_id = %s AND leaf_index < 0", seal.tenant_id)


def delete_tile(world: World) -> None:
    tile = world.tile()
    sql("DELETE FROM evidence_tile WHERE tenant_id = %s AND level = %s AND n = %s", tile.tenant_id, tile.level, tile.n)


def delete_checkpoint(world: World) -> None:
    """Of a tenant's log, or the newest of the global one; older ones of that say nothing that its tree does not."""
    newest = Checkpoint.objects.filter(tenant_id=GLOBAL_LOG).latest("size")
    sql("DELETE FROM evidence_checkpoint WHERE id = %s", world.by.choice([world.checkpoint(), newest]).pk)


def delete_log(world: World) -> None:
    sql("DELETE FROM evidence_log WHERE tenant_id = %s", world.log().pk)


def delete_key(world: World) -> None:
    del world
    sql("DELETE FROM evidence_logkey")


def delete_pending(world: World) -> None:
    row = world.by.choice(list(Pending.objects.filter(tenant_id__in=world.tenants)))
    sql("DELETE FROM evidence_pending WHERE fact_id = %s", row.pk)


# Insert.


def _copied(fact: Fact) -> UUID:
    id, table = new_id(), "evidence_fact"
    names = [name for name in columns(Fact) if name != "id"]
    sql(
        f"INSERT INTO {table} (id, {', '.join(names)}) SELECT %s, {', '.join(names)} FROM {table} WHERE id = %s",
        id,
        fact.pk,
    )
    return id


def _plain(world: World) -> Fact:
    """One that is no half of a pair, of which the database lets there be one only."""
    found: Fact = world.by.choice(
        list(Fact.objects.filter(tenant_id__in=world.tenants, kind="tool.paused", seal__isnull=False))
    )
    return found


def insert_fact(world: World) -> None:
    _copied(_plain(world))


def insert_sealed_fact(world: World) -> None:
    fact = _plain(world)
    end = Seal.objects.filter(tenant_id=fact.tenant_id).count()
    id = _copied(fact)
    sql("INSERT INTO evidence_seal (fact_id, tenant_id, leaf_index) VALUES (%s, %s, %s)", id, fact.tenant_id, end)


def insert_in_the_middle(world: World) -> None:
    fact = _plain(world)
    at, tenant = fact.seal.leaf_index, fact.tenant_id
    sql("UPDATE evidence_seal SET leaf_index = -leaf_index - 1 WHERE tenant_id = %s AND leaf_index >= %s", tenant, at)
    sql("UPDATE evidence_seal SET leaf_index = -leaf_index WHERE tenant_id = %s AND leaf_index < 0", tenant)
    sql("INSERT INTO evidence_seal (fact_id, tenant_id, leaf_index) VALUES (%s, %s, %s)", _copied(fact), tenant, at)


def insert_tile(world: World) -> None:
    tile = world.tile()
    sql(
        "INSERT INTO evidence_tile (tenant_id, level, n, hashes) VALUES (%s, %s, %s, %s)",
        tile.tenant_id, world.by.choice([0, 5]), 77, bytes(tile.hashes),
    )  # fmt: skip


def insert_checkpoint(world: World) -> None:
    """A copy at a size that has none: of the same log, or of the other one."""
    row = world.checkpoint()
    sizes = set(Checkpoint.objects.filter(tenant_id=row.tenant_id).values_list("size", flat=True))
    size = world.by.choice([n for n in range(1, max(sizes) + 20) if n not in sizes])
    tenant = world.by.choice(world.tenants)
    if Checkpoint.objects.filter(tenant_id=tenant, size=size).exists():
        size += 1000
    values = (tenant, size, bytes(row.root), row.note, _moment(row.created_at))
    sql(
        "INSERT INTO evidence_checkpoint (tenant_id, size, root, note, created_at) VALUES (%s, %s, %s, %s, %s)", *values
    )


def insert_pending(world: World) -> None:
    seal = world.seal()
    sql("INSERT INTO evidence_pending (fact_id, tenant_id) VALUES (%s, %s)", seal.fact_id, seal.tenant_id)


# Reorder, and swap between tenants.


def _swap_seals(one: Seal, other: Seal) -> None:
    sql("UPDATE evidence_seal SET leaf_index = %s, tenant_id = %s WHERE fact_id = %s", -7, one.tenant_id, one.fact_id)
    for seal, place in ((other, one), (one, other)):
        sql(
            "UPDATE evidence_seal SET leaf_index = %s, tenant_id = %s WHERE fact_id = %s",
            place.leaf_index, place.tenant_id, seal.fact_id,
        )  # fmt: skip


def reorder_seals(world: World) -> None:
    tenant = world.one()
    one, other = world.by.sample(list(Seal.objects.filter(tenant_id=tenant)), 2)
    _swap_seals(one, other)


def reorder_leaves(world: World) -> None:
    one, other = (seal.fact for seal in world.by.sample(list(Seal.objects.filter(tenant_id=world.one())), 2))
    for fact, says in ((one, other), (other, one)):
        sql(
            "UPDATE evidence_fact SET leaf = %s, leaf_hash = %s WHERE id = %s",
            bytes(says.leaf),
            bytes(says.leaf_hash),
            fact.pk,
        )


def reorder_hashes(world: World) -> None:
    tile = Tile.objects.get(tenant_id=world.one(), level=0, n=0)
    hashes = [bytes(tile.hashes)[at : at + 32] for at in range(0, len(tile.hashes), 32)]
    one, other = world.by.sample(range(len(hashes)), 2)
    hashes[one], hashes[other] = hashes[other], hashes[one]
    _write_tile(tile, b"".join(hashes))


def reorder_notes(world: World) -> None:
    one, other = world.by.sample(list(Checkpoint.objects.filter(tenant_id=world.one())), 2)
    for row, says in ((one, other), (other, one)):
        sql("UPDATE evidence_checkpoint SET note = %s WHERE id = %s", says.note, row.pk)


def swap_facts(world: World) -> None:
    one, other = (world.seal(tenant) for tenant in world.tenants)
    _swap_seals(one, other)


def swap_tenant_of_fact(world: World) -> None:
    one, other = world.by.sample(world.tenants, 2)
    sql("UPDATE evidence_fact SET tenant_id = %s WHERE id = %s", other, world.seal(one).fact_id)


def swap_tiles(world: World) -> None:
    one, other = (Tile.objects.get(tenant_id=tenant, level=0, n=0) for tenant in world.tenants)
    for tile, says in ((one, other), (other, one)):
        _write_tile(tile, bytes(says.hashes))


def swap_logs(world: World) -> None:
    """All of one log's tree becomes the other's."""
    one, other = world.tenants
    for table in ("evidence_tile", "evidence_checkpoint"):
        for now, then in ((one, UUID(int=7)), (other, one), (UUID(int=7), other)):
            sql(f"UPDATE {table} SET tenant_id = %s WHERE tenant_id = %s", then, now)


# Truncate, and put back.


def truncate_seals(world: World) -> None:
    tenant = world.one()
    size = Seal.objects.filter(tenant_id=tenant).count()
    sql("DELETE FROM evidence_seal WHERE tenant_id = %s AND leaf_index >= %s", tenant, world.by.randrange(size))


def truncate_tile(world: World) -> None:
    tile = world.tile()
    hashes = bytes(tile.hashes)
    _write_tile(tile, hashes[: world.by.randrange(len(hashes))])


def truncate_log(world: World) -> None:
    """One tenant's log as it was, with all that belongs to it; the rest stays."""
    put_back(world.by.choice(world.before), of=world.one())


def roll_back(world: World) -> None:
    """Everything as it was."""
    put_back(world.before[world.by.randrange(len(world.before))])


OPERATIONS: tuple[Callable[[World], None], ...] = (
    change_column, change_time, change_leaf, change_packed_leaf, change_leaf_hash, rewrite_fact, rewrite_fact_and_tile,
    change_tile, change_note, change_root, change_size, change_global_index, change_log, change_key,
    delete_fact, delete_seal, delete_fact_and_seal, delete_and_close_the_gap, delete_tile, delete_checkpoint, delete_log,
    delete_key, delete_pending,
    insert_fact, insert_sealed_fact, insert_in_the_middle, insert_tile, insert_checkpoint, insert_pending,
    reorder_seals, reorder_leaves, reorder_hashes, reorder_notes,
    swap_facts, swap_tenant_of_fact, swap_tiles, swap_logs,
    truncate_seals, truncate_tile, truncate_log, roll_back,
)  # fmt: skip

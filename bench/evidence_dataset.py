"""Evidence data set: the evidence of millions of calls, without making the calls.

Writes facts, their places in the logs and the index of the search by COPY, as the hub would have written them: a few large tenants
and many small ones, tools and agents that are used much and hardly, failures of which some are rare, over two months or longer.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from evidence.packed_leaves import pack_leaf
from evidence.search import postings
from evidence.search.bucket_merges import build_buckets, merge_buckets
from evidence.search.buckets import is_bucketed
from evidence.search.postings import BLOCK
from evidence.search.tags import HASH_DIGITS, call_tag, call_traits, compute_tags, make_tag
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

DAYS = 60
POLICY_DAYS = 3  # after which there is another version of the policy
AT_ONCE = 40_000  # calls between two rounds of COPY
SHARES = (40, 20, 12, 8, 6, 5, 4, 3, 1, 1)  # of the tenants, per cent
AREAS = ("commerce.orders", "commerce.pricing", "web.pages", "bank.accounts", "mail.boxes", "maps.routes")
TOOLS, AGENTS, RARE_CODE = 240, 80, "SANDBOX.SECRET_LEAK"
CODES = ("TOOL.EXECUTION_FAILED", "SANDBOX.TIMEOUT", "PROVIDER.UNAVAILABLE", "SCHEMA.OUTPUT_INVALID")
DENIALS = ("QUOTA.BUDGET_EXCEEDED", "POLICY.DENY_TOOL", "QUOTA.RATE_LIMITED")
FACT = (
    "id, tenant_id, kind, subject, invocation_id, occurred_at, actor_kind, actor_id, tool, outcome, reason, trace_id, leaf, "
    "leaf_hash"
)


@dataclass(slots=True)
class DatasetTenant:
    id: UUID
    agents: list[str]
    size: int = 0
    block: dict[bytes, int] = field(default_factory=dict)
    first: UUID | None = None
    samples: dict[str, list[str]] = field(default_factory=dict)  # what to ask for later

    def keep(self, name: str, value: str, chosen: random.Random) -> None:
        kept = self.samples.setdefault(name, [])
        if len(kept) < 400:
            kept.append(value)
        elif chosen.random() < 0.01:
            kept[chosen.randrange(400)] = value


@dataclass(slots=True)
class CopyRows:
    """Rows of tables that wait for the next COPY."""

    fact: list[str] = field(default_factory=list)
    seal: list[str] = field(default_factory=list)
    posting: list[str] = field(default_factory=list)
    bucket: list[str] = field(default_factory=list)
    block: list[str] = field(default_factory=list)


def _skewed(chosen: random.Random, count: int) -> int:
    """The first ones much more often than the last."""
    return min(int(count * chosen.random() ** 3), count - 1)


class DatasetWriter:
    def __init__(self, connection: Connection[Any], facts: int, *, days: int = DAYS) -> None:
        self.connection, self.facts, self.days = connection, facts, days
        self.chosen, self.lines = random.Random(11), CopyRows()
        self.tenants = [
            DatasetTenant(new_id(), [encode("agt", new_id()) for _ in range(AGENTS)]) for _ in range(len(SHARES))
        ]
        self.begun = datetime.now(UTC) - timedelta(days=days)
        self.known: dict[tuple[Any, ...], frozenset[bytes]] = {}
        self.version = {n: self._digest() for n in range(TOOLS)}

    def _digest(self) -> str:
        return f"sha256:{self.chosen.randbytes(32).hex()}"

    def run(self) -> list[DatasetTenant]:
        # As somebody who owns the tables may, in a database that is thrown away: there are no calls behind the facts.
        self.connection.execute("ALTER TABLE evidence_fact DISABLE TRIGGER USER")
        for number in range(self.facts // 2):
            self._call(number / (self.facts // 2))
            if number % AT_ONCE == AT_ONCE - 1:
                self._copy()
        for tenant in self.tenants:
            self._end_block(tenant)
            self.connection.execute(
                "INSERT INTO evidence_indexed (tenant_id, size) VALUES (%s, %s)", [tenant.id, tenant.size]
            )
        self._copy()
        for tenant in self.tenants:
            merge_buckets(tenant.id)
        return self.tenants

    def _call(self, share: float) -> None:
        chosen = self.chosen
        (tenant,) = chosen.choices(self.tenants, SHARES)
        at = self.begun + timedelta(days=self.days * share)
        tool_number = _skewed(chosen, TOOLS)
        tool = f"{AREAS[tool_number % len(AREAS)]}.t{tool_number}"
        agent, luck = tenant.agents[_skewed(chosen, AGENTS)], chosen.random()
        outcome, code = "succeeded", ""
        if luck < 0.02:
            outcome, code = "denied", DENIALS[_skewed(chosen, len(DENIALS))]
        elif luck < 0.06:
            outcome, code = "failed", RARE_CODE if chosen.random() < 0.0005 else CODES[_skewed(chosen, len(CODES))]
        call = self._id(at)  # facts of a call are looked for from its time on
        subject, trace = encode("inv", call), chosen.randbytes(16).hex()
        commits = [self._digest() for _ in range(3)]
        begin_data: dict[str, Any] = {
            "origin": "agent",
            "request_id": f"r-{chosen.randrange(10**9)}",
            "input": {"commit": commits[0], "bytes": 512, "alg": "sha256-jcs", "snapshot": encode("snp", self._id(at))},
            "tool": {"name": tool, "version": "1.4.2", "build": self.version[tool_number]},
            "policy": {"version": f"tenant-{int(share * self.days / POLICY_DAYS)}", "hash": self.version[0]},
            "decision": {"allowed": outcome != "denied", "consent": False, "rules": ["tenant/allow"]},
        }
        special: list[tuple[str, str]] = []
        if luck > 0.97:
            special.append(("chain", encode("chn", self._id(at))))
            begin_data["chain"] = {"id": special[-1][1]}
        if luck > 0.995:
            special.append(("consent", encode("cns", self._id(at))))
            begin_data["consent"] = special[-1][1]
        found = (
            [{"action": "mask", "detector": "phone" if luck < 0.9 else "email", "count": 2}]
            if 0.88 < luck < 0.91
            else []
        )
        end_data: dict[str, Any] = {
            "output": {"commit": commits[1], "raw": commits[2], "snapshot": encode("snp", self._id(at))},
            "run": {"status": "ok", "duration_ms": 120, "cpu_ms": 40, "image": "tools@1"},
            "obligations": found,
        }
        begin = self._fact(
            tenant, at, "invocation.began", subject, call, "agent", agent, tool, "accepted", "", trace, begin_data
        )
        self._index(tenant, call, *begin, (), special)
        end = self._fact(
            tenant, at + timedelta(milliseconds=240), "invocation.ended", subject, call, "system", "system:worker", tool,
            outcome, code, trace, end_data,
        )  # fmt: skip
        self._index(tenant, call, *end, (begin[1],), special)
        for name, value in [("call", subject), ("trace", trace), ("hash", commits[1]), ("tool", tool), ("agent", agent),
                            ("fact", encode("fct", end[0])), ("policy", begin_data["policy"]["version"]), *special]:  # fmt: skip
            tenant.keep(name, value, chosen)

    def _id(self, at: datetime) -> UUID:
        head = int(at.timestamp() * 1000) << 80
        return UUID(int=head | 7 << 76 | self.chosen.getrandbits(12) << 64 | 2 << 62 | self.chosen.getrandbits(62))

    def _fact(
        self, tenant: DatasetTenant, at: datetime, kind: str, subject: str, call: UUID, actor_kind: str, actor: str, tool: str,
        outcome: str, reason: str, trace: str, data: dict[str, Any],
    ) -> tuple[UUID, dict[str, Any], bytes]:  # fmt: skip
        id, when = self._id(at), at.isoformat(timespec="microseconds")
        leaf: dict[str, Any] = {
            "v": 1, "id": encode("fct", id), "kind": kind, "at": when, "tenant": encode("ten", tenant.id), "subject": subject,
            "actor": {"kind": actor_kind, "id": actor}, "invocation": subject, "tool": tool, "outcome": outcome, "trace": trace,
            "data": data,
        } | ({"reason": reason} if reason else {})  # fmt: skip
        raw = json.dumps(leaf, sort_keys=True, separators=(",", ":")).encode()
        hash = hashlib.sha256(b"\0" + raw).digest()
        self.lines.fact.append(
            f"{id}\t{tenant.id}\t{kind}\t{subject}\t{call}\t{when}\t{actor_kind}\t{actor}\t{tool}\t{outcome}\t{reason}\t{trace}"
            f"\t\\\\x{pack_leaf(raw).hex()}\t\\\\x{hash.hex()}\n"
        )
        self.lines.seal.append(f"{id}\t{tenant.id}\t{tenant.size}\n")
        return id, leaf, hash

    def _index(
        self,
        tenant: DatasetTenant,
        call: UUID,
        id: UUID,
        leaf: dict[str, Any],
        hash: bytes,
        before: tuple[dict[str, Any], ...],
        special: list[Any],
    ) -> None:
        """What is the same for all facts of a sort is worked out once; what is a fact's own each time."""
        data = leaf["data"]
        begun = before[0] if before else leaf
        sort = (
            leaf["kind"], leaf["tool"], begun["actor"]["id"], leaf["outcome"], leaf.get("reason"), bool(special),
            str(data.get("obligations")), begun["data"]["policy"]["version"],
        )  # fmt: skip
        own = self._own(leaf, hash, special)
        if sort not in self.known or special:
            all_tags = compute_tags(leaf, hash, call_traits([begun]))
            assert own <= all_tags
            common = frozenset(all_tags - own - {call_tag(call)})
            if not special:
                self.known[sort] = common
        else:
            common = self.known[sort]
        bit = 1 << tenant.size % BLOCK
        for each in (*common, *own):
            tenant.block[each] = tenant.block.get(each, 0) | bit
        tenant.first = tenant.first or id
        tenant.size += 1
        if tenant.size % BLOCK == 0:
            self._end_block(tenant, id)

    def _own(self, leaf: dict[str, Any], hash: bytes, special: list[tuple[str, str]]) -> set[bytes]:
        data = leaf["data"]
        values = data.get("input") or data["output"]
        hashes = [hash.hex(), *(values[name][7:] for name in ("commit", "raw") if name in values)]
        ids = [values["snapshot"], *(id for _, id in special)]
        return {
            *(make_tag("hash", each[:HASH_DIGITS]) for each in hashes),
            *(make_tag("id", each) for each in ids),
            make_tag("trace", leaf["trace"]),
        }

    def _end_block(self, tenant: DatasetTenant, last: UUID | None = None) -> None:
        if not tenant.block:
            return
        number = (tenant.size - 1) // BLOCK
        begin = number * BLOCK
        few = {
            name: [begin + at for at in postings.iter_rising(tenant.block.pop(name))]
            for name in [*tenant.block]
            if is_bucketed(name)
        }
        buckets, frequent = build_buckets(tenant.id, few, low=begin, high=tenant.size)
        for row in buckets:
            self.lines.bucket.append(f"{tenant.id}\t{row.level}\t{row.part}\t{row.first}\t\\\\x{row.content.hex()}\n")
        tenant.block |= {name: sum(1 << place - begin for place in places) for name, places in frequent.items()}
        for name, bits in tenant.block.items():
            self.lines.posting.append(f"{tenant.id}\t\\\\x{name.hex()}\t{number}\t\\\\x{postings.encode(bits).hex()}\n")
        assert tenant.first is not None
        last = last or self._id(datetime.now(UTC))
        self.lines.block.append(f"{tenant.id}\t{number}\t{tenant.first}\t{last}\n")
        tenant.block, tenant.first = {}, None

    def _copy(self) -> None:
        for table, columns, lines in self._tables():
            with self.connection.cursor() as cursor, cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for at in range(0, len(lines), 5_000):
                    copy.write("".join(lines[at : at + 5_000]))
        self.lines = CopyRows()

    def _tables(self) -> Iterator[tuple[str, str, list[str]]]:
        yield "evidence_fact", FACT, self.lines.fact
        yield "evidence_seal", "fact_id, tenant_id, leaf_index", self.lines.seal
        yield "evidence_posting", "tenant_id, tag, block, places", self.lines.posting
        yield "evidence_postingbucket", "tenant_id, level, part, first, content", self.lines.bucket
        yield "evidence_indexblock", "tenant_id, number, first_id, last_id", self.lines.block

"""Do calls go on being answered as they should for long, and does nothing grow meanwhile?

A mixed load over HTTP on the production shape: several tenants and agents, calls that are waited for, that are fetched later, that are
repeated with their key, that are refused, wrong or cancelled. Exit status 2 when an answer was not what it should be or something
grew, 1 when it could not be found out.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import sys
import threading
import time
import uuid
from collections import Counter
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import redis

from bench.figures import CannotMeasure, Times, machine, print_table
from bench.hubs import manage
from bench.protocol import production

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.protocol import Hub

CALLERS = 8
# Per cent of the calls.
SHARES = {"waited for": 55, "fetched later": 12, "repeated": 15, "refused": 8, "wrong": 6, "cancelled": 4}
LOOKS = 10
WARM_SHARE = 0.3  # of the time; what grows before counts as warming up
MAY_GROW = {"web MiB": 25, "worker MiB": 25, "web threads": 4, "worker threads": 4, "connections": 4, "Redis keys": 20}
FINAL = ("succeeded", "failed", "timed_out", "cancelled", "outcome_unknown")
UNPAIRED = """
    SELECT count(*) FROM invocations_invocation i WHERE (SELECT count(*) FROM evidence_fact f WHERE f.invocation_id = i.id
        AND f.kind IN ('invocation.began', 'invocation.ended')) <> 2
"""
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
RESERVED = "SELECT COALESCE(sum(reserved), 0) FROM access_budgetwindow"
OWN_REDIS = "/11"  # the number of a database that nobody else uses


@dataclass(slots=True)
class Found:
    """What came of the calls."""

    took: dict[str, list[float]] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, ms: float, status: int, wrong: str) -> None:
        with self.lock:
            self.took.setdefault(kind, []).append(ms)
            self.answers[f"{kind}: {status}"] += 1
            if wrong:
                self.wrong.append(f"{kind}: {wrong}")


class Caller:
    """One agent's connection, which is kept."""

    def __init__(self, hub: Hub, key: str, seed: str, found: Found) -> None:
        self._connection = http.client.HTTPConnection(hub.base, timeout=90)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._chance, self._found = random.Random(seed), found
        self._ways: dict[str, Callable[[], tuple[int, str]]] = {
            "waited for": self._waited_for,
            "fetched later": self._fetched_later,
            "repeated": self._repeated,
            "refused": self._refused,
            "wrong": self._wrong,
            "cancelled": self._cancelled,
        }

    def one(self) -> None:
        kind = self._chance.choices(list(SHARES), list(SHARES.values()))[0]
        begun = time.perf_counter()
        status, wrong = self._ways[kind]()
        self._found.add(kind, (time.perf_counter() - begun) * 1000, status, wrong)

    def _ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any], bytes]:
        data = None if body is None else json.dumps(body)
        self._connection.request(method, f"/api/v1{path}", data, self._headers | headers)
        response = self._connection.getresponse()
        said = response.read()
        return response.status, json.loads(said), said

    def _call(self, tool: str, arguments: Any, **headers: str) -> tuple[int, dict[str, Any], bytes]:
        body = {
            "request_id": f"soak-{uuid.uuid4().hex[:16]}",
            "actor": {"type": "agent", "id": "soak"},
            "arguments": arguments,
        }
        return self._ask("POST", f"/tools/sample.tools.{tool}/invoke", body, **headers)

    def _waited_for(self) -> tuple[int, str]:
        text = uuid.uuid4().hex
        status, body, said = self._call("echo", {"text": text})
        return status, "" if status == 200 and body["data"]["text"] == text else said.decode()

    def _fetched_later(self) -> tuple[int, str]:
        text = uuid.uuid4().hex
        status, body, said = self._call("echo", {"text": text}, Prefer="respond-async")
        if status == 202:  # one that ended at this very moment is answered at once
            status, body, said = self._until_final(body["call"]["call_id"])
        return status, "" if status == 200 and body["data"]["text"] == text else said.decode()

    def _repeated(self) -> tuple[int, str]:
        """Byte for byte the same answer, and the tool is told one key."""
        key, text = f"soak-{uuid.uuid4().hex}", uuid.uuid4().hex
        headers = {"Idempotency-Key": key}
        status, body, said = self._call("write", {"text": text}, **headers)
        again = [self._call("write", {"text": text}, **headers) for _ in range(2)]
        good = status == 200 and body["data"]["written"] == text and all(each[2] == said for each in again)
        return status, "" if good else f"{said.decode()} {again}"

    def _refused(self) -> tuple[int, str]:
        status, body, said = self._call("ungranted", {"text": "x"})
        return status, "" if (status, body["error"]["code"]) == (403, "FORBIDDEN") else said.decode()

    def _wrong(self) -> tuple[int, str]:
        status, _, said = self._call("echo", {"text": 7})
        return status, "" if status in (400, 422) else said.decode()

    def _cancelled(self) -> tuple[int, str]:
        status, body, said = self._call("slow", {"text": "x", "seconds": 3}, Prefer="respond-async")
        if status != 202:
            return status, said.decode()
        call_id = body["call"]["call_id"]
        self._ask("DELETE", f"/invocations/{call_id}")
        status, body, said = self._until_final(call_id)
        return status, "" if body["call"]["state"] in ("cancelled", "succeeded") else said.decode()

    def _until_final(self, call_id: str) -> tuple[int, dict[str, Any], bytes]:
        until = time.monotonic() + 60
        while True:
            found = self._ask("GET", f"/invocations/{call_id}")
            if found[1]["call"]["state"] in FINAL or time.monotonic() > until:
                return found
            time.sleep(0.1)


@dataclass(frozen=True, slots=True)
class Look:
    web_mib: float
    web_threads: int
    worker_mib: float
    worker_threads: int
    connections: int
    redis_keys: int


HEAD = ("web MiB", "web threads", "worker MiB", "worker threads", "connections", "Redis keys")


def look(hub: Hub) -> Look:
    with psycopg.connect(hub.database) as connection:
        connections = connection.execute(CONNECTIONS).fetchone()
    with redis.Redis.from_url(hub.env["TOOLHUB_REDIS_URL"]) as client:
        keys = int(client.dbsize())
    web, worker = (size_of(child_called(name)) for name in ("uvicorn", "celery"))
    return Look(*web, *worker, connections[0] if connections else 0, keys)


def child_called(name: str) -> Path:
    """Of the processes that this one has started."""
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                words = (place / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == os.getpid() and name.encode() in words:
                return place
    raise CannotMeasure(f"The process {name} has ended.")


def size_of(process: Path) -> tuple[float, int]:
    """(MiB, threads)."""
    fields = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0]) / 1024, int(fields["Threads"])


def soak(hub: Hub, minutes: float, seed: int) -> int:
    keys: list[str] = json.loads(manage(hub.env, "-m", "bench.soak_scene").splitlines()[-1])
    found, until = Found(), time.monotonic() + minutes * 60
    failures: list[str] = []

    def work(number: int) -> None:
        caller = Caller(hub, keys[number % len(keys)], f"{seed}-{number}", found)
        try:
            while time.monotonic() < until:
                caller.one()
        except Exception as error:  # noqa: BLE001  one caller that fails is a finding, and ends no other
            failures.append(f"caller {number}: {error!r}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    looks = watched(hub, minutes * 60)
    for thread in threads:
        thread.join()
    with psycopg.connect(hub.database) as connection:
        open_ends, reserved = (connection.execute(query).fetchone() for query in (UNPAIRED, RESERVED))
    rows = [Times(kind, ms).row() for kind, ms in sorted(found.took.items())]
    done = sum(len(ms) for ms in found.took.values())
    print_table(
        f"{done} calls by {CALLERS} callers in {minutes:g} minutes, milliseconds",
        ("calls", "N", "min", "p50", "p95"),
        rows,
    )
    print_table(
        "How they were answered", ("", "calls"), [[name, str(count)] for name, count in sorted(found.answers.items())]
    )
    print_table(
        "What there was",
        ("after s", *HEAD),
        [[f"{at:.0f}", *(f"{value:.0f}" for value in astuple(each))] for at, each in looks],
    )
    for sentence in [*found.wrong, *failures][:20]:
        print(f"WRONG  {sentence[:1000]}")
    verdicts = [
        verdict("answers that should have been others: 0", len(found.wrong) + len(failures), 0),
        verdict("calls without their pair: 0", open_ends[0] if open_ends else -1, 0),
        verdict("reserved in budgets at the end: 0", int(reserved[0]) if reserved else -1, 0),
        *grown(looks),
    ]
    print_table("Verdict", ("figure", "measured", ""), verdicts)
    return 2 if any(line[-1] == "NOT reached" for line in verdicts) else 0


def watched(hub: Hub, seconds: float) -> list[tuple[float, Look]]:
    """What there is at some moments of the time, the first when all is warm."""
    begun, looks = time.monotonic(), []
    for number in range(LOOKS + 1):
        at = seconds * (WARM_SHARE + (0.98 - WARM_SHARE) * number / LOOKS)
        time.sleep(max(0.0, begun + at - time.monotonic()))
        looks.append((at, look(hub)))
    return looks


def grown(looks: Sequence[tuple[float, Look]]) -> list[list[str]]:
    """The least of the last looks against the most of the first: what goes up and down does not count."""
    first, last = [each for _, each in looks[:3]], [each for _, each in looks[-3:]]
    rows = []
    for number, name in enumerate(HEAD):
        more = min(astuple(each)[number] for each in last) - max(astuple(each)[number] for each in first)
        rows.append(verdict(f"{name} more than when warm (at most {MAY_GROW[name]})", round(more), MAY_GROW[name]))
    return rows


def verdict(what: str, measured: int, most: int) -> list[str]:
    return [what, str(measured), "reached" if 0 <= max(measured, 0) <= most else "NOT reached"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak_protocol", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="(default 10)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="the same calls again")
    asked = parser.parse_args()
    print_table("Machine", ("", ""), [*machine(), ("seed", str(asked.seed))])
    try:
        database_url, redis_url = os.environ["TOOLHUB_TEST_DATABASE_URL"], os.environ["TOOLHUB_TEST_REDIS_URL"]
        own_redis = urlunsplit(urlsplit(redis_url)._replace(path=OWN_REDIS))
        with production(database_url, own_redis, TOOLHUB_RATE_REFUSED_CALLS="0") as hub:
            return soak(hub, asked.minutes, asked.seed)
    except KeyError as error:
        print(f"\n{error} is not set. Type:  scripts/testenv start  and source .testenv/env.", file=sys.stderr)
        return 1
    except CannotMeasure as error:
        print(f"\nIt could not be found out. {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""Soak of workers and sandbox hosts: they are killed in turn, while callers go on.

``python3 -m scripts.provision measure bench.soak_hosts`` runs web, upkeep, several workers and two daemons of sandbox hosts as
processes of their own, and 16 callers. One after the other a worker or a daemon is killed and another takes its place. A call may end
as ``outcome_unknown`` when the process that had it was killed, and for nothing else. Exit status 2 when a call ended otherwise, a pair
is missing, money stays reserved or a box is left; 1 when it could not be found out.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from bench.figures import ROOT, CannotMeasure, describe_machine, print_table, read_output
from bench.governed_calls import ProductionHub, run_production
from bench.hubs import run_python
from bench.sandbox_harness import get_image_name
from bench.soak_deployments import OWN_REDIS, SETTINGS
from bench.soak_hub import FINAL, FINDINGS, RESERVED, UNPAIRED, judge_count

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

CALLERS, WORKERS, HOSTS = 16, 3, 2
TOOL, ARGUMENTS = "sample.tools.slow", {"text": "x", "seconds": 0.3}
LEASE_S = 6
NEW_S = 120  # for a process to have its first call
BOXES_GONE_S = 30
UNKNOWN = "outcome_unknown"
CALLS = """
    SELECT i.id, i.state, a.worker, a.started_at, a.finished_at, a.box
      FROM invocations_invocation i LEFT JOIN invocations_attempt a ON a.invocation_id = i.id
"""
TWICE = """
    SELECT count(*) FROM (SELECT 1 FROM invocations_attempt WHERE status NOT IN ('', 'start_failed')
                           GROUP BY invocation_id HAVING count(*) > 1) again
"""
OPEN = "SELECT count(*) FROM invocations_invocation WHERE state NOT IN ('" + "', '".join(FINAL) + "', 'denied')"


@dataclass(slots=True)
class Kill:
    """One process that was killed."""

    kind: str  # worker or host
    name: str  # of the worker, as its attempts have it; or the address of the host
    began_at: float
    ended_at: float
    had: int  # calls that it may have had
    boxes: set[str] = field(default_factory=set)  # that it had


@dataclass(slots=True)
class KillTally:
    """What callers were answered."""

    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, status: int, body: dict[str, Any]) -> None:
        state = str(body.get("call", {}).get("state", ""))
        with self.lock:
            self.answers[f"{status} {state}"] += 1
            if (status, state) != (200, "succeeded") and state != UNKNOWN:
                self.wrong.append(f"{status} {json.dumps(body)[:600]}")


class HostFleet:
    """Workers and daemons of sandbox hosts of one hub, which are killed and begun anew."""

    def __init__(
        self, hub: ProductionHub, hosts: dict[str, dict[str, str]], daemons: dict[str, subprocess.Popen[bytes]]
    ) -> None:
        self.hub, self._hosts, self._folder = hub, hosts, Path(hub.env["TOOLHUB_DATA_DIR"])
        self.daemons = daemons
        self.workers: list[subprocess.Popen[bytes]] = []
        self._begun = 0

    def start_worker(self) -> subprocess.Popen[bytes]:
        self._begun += 1
        with (self._folder / f"worker-{self._begun}.log").open("wb") as output:
            command = [sys.executable, "-m", "celery", "-A", "toolhub", "worker", "--loglevel", "WARNING"]
            self.workers.append(
                subprocess.Popen(
                    command, cwd=ROOT, env=self.hub.env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
                )
            )
        return self.workers[-1]

    def kill_worker(self) -> Kill:
        """The oldest; another one has its first call before this returns."""
        victim = self.workers.pop(0)
        name = f"{socket.gethostname()}:{victim.pid}"
        had = self._count("a.worker = %s AND a.finished_at IS NULL AND i.state = 'running'", name)
        kill = Kill("worker", name, *kill_process(victim), had)
        fresh = self.start_worker()
        self._wait_for_call(f"a.worker = '{socket.gethostname()}:{fresh.pid}'", fresh)
        return kill

    def kill_host(self) -> Kill:
        address, daemon = next(iter(self.daemons.items()))
        del self.daemons[address]
        had, boxes = self._count("i.state = 'running'"), list_boxes(self._hosts[address]["TOOLHUB_INSTANCE"])
        kill = Kill("host", address, *kill_process(daemon), had, boxes)
        self.daemons[address] = start_daemon(self._hosts[address], self._folder / f"boxd-{time.time_ns()}.log")
        return kill

    @property
    def instances(self) -> list[str]:
        """Of which the boxes of each host are."""
        return [env["TOOLHUB_INSTANCE"] for env in self._hosts.values()]

    def stop(self) -> None:
        stop_processes(self.workers)

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.hub.database) as connection:
            return connection.execute(query.encode(), values or None).fetchall()

    def _count(self, where: str, *values: Any) -> int:
        return len(self.ask(f"{CALLS} WHERE {where}", *values))

    def _wait_for_call(self, where: str, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + NEW_S
        while not self._count(where):
            if process.poll() is not None or time.monotonic() > until:
                raise CannotMeasure("A worker that was begun anew took no call.")
            time.sleep(0.2)


def kill_process(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """When this began and when the process was gone."""
    begun = time.time()
    process.kill()
    process.wait()
    return begun, time.time()


def stop_processes(processes: Collection[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def start_daemon(env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "toolhub.boxd"],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    until = time.monotonic() + NEW_S
    while b"Answers at the socket" not in log.read_bytes():
        if daemon.poll() is not None or time.monotonic() > until:
            raise CannotMeasure(f"A daemon did not begin:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)
    return daemon


@contextmanager
def run_fleet() -> Iterator[HostFleet]:
    database, broker = os.environ["TOOLHUB_TEST_DATABASE_URL"], os.environ["TOOLHUB_TEST_REDIS_URL"]
    own_broker = urlunsplit(urlsplit(broker)._replace(path=OWN_REDIS))
    instance = f"soak-hosts-{uuid.uuid4().hex[:8]}"
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolhub-bench-")))
        hosts = {
            f"unix://{place}/{number}/boxd.sock": describe_daemon(place / str(number), f"{instance}-{number}")
            for number in range(HOSTS)
        }
        daemons: dict[str, subprocess.Popen[bytes]] = {}
        stack.callback(stop_processes, daemons.values())
        for number, (url, env) in enumerate(hosts.items()):
            daemons[url] = start_daemon(env, place / f"boxd-{number}.log")
        settings = SETTINGS | {
            "TOOLHUB_SANDBOX_HOSTS": ",".join(hosts),
            "TOOLHUB_LEASE_S": str(LEASE_S),
            "TOOLHUB_WORKER_CONCURRENCY": str(CALLERS // 2),
        }
        hub = stack.enter_context(run_production(database, own_broker, kept=True, **settings))
        fleet = HostFleet(hub, hosts, daemons)
        stack.callback(fleet.stop)
        for _ in range(WORKERS - 1):  # beside the one that the hub began with, which is not killed
            fleet.start_worker()
        yield fleet


def describe_daemon(place: Path, instance: str) -> dict[str, str]:
    place.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TOOLHUB_")}
    return kept | {
        "TOOLHUB_ENV_FILE": "",
        "TOOLHUB_SANDBOX_IMAGE": get_image_name(),
        "TOOLHUB_INSTANCE": instance,
        "TOOLHUB_DATA_DIR": str(place / "data"),
        "TOOLHUB_SANDBOX_RUN_DIR": str(place / "run"),
        "TOOLHUB_SANDBOX_LEVEL": "shared",
        "TOOLHUB_BOXD_SOCKET": str(place / "boxd.sock"),
    }


def call_until(base: str, key: str, stop: threading.Event, tally: KillTally) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(base, timeout=120)
    while not stop.is_set():
        body = {
            "request_id": f"soak-{uuid.uuid4().hex[:16]}",
            "actor": {"type": "agent", "id": "soak"},
            "arguments": ARGUMENTS,
        }
        try:
            connection.request("POST", f"/api/v1/tools/{TOOL}/invoke", json.dumps(body), headers)
            response = connection.getresponse()
            status, said = response.status, json.loads(response.read())
            while status == 202:  # it takes longer than the hub lets a caller wait
                time.sleep(0.2)
                connection.request("GET", f"/api/v1/invocations/{said['call']['call_id']}", headers=headers)
                response = connection.getresponse()
                status, said = response.status, json.loads(response.read())
                if said["call"]["state"] not in FINAL:
                    status = 202
        except (OSError, http.client.HTTPException, ValueError) as error:
            with tally.lock:
                tally.wrong.append(f"no answer: {error!r}")
            connection.close()
            continue
        tally.add(status, said)


def run_soak(fleet: HostFleet, workers: int, hosts: int) -> tuple[KillTally, list[Kill]]:
    """``workers`` and ``hosts``: how many of them are killed."""
    keys: list[str] = json.loads(run_python(fleet.hub.env, "-m", "bench.soak_tenants").splitlines()[-1])
    tally, stop, kills = KillTally(), threading.Event(), list[Kill]()
    threads = [
        threading.Thread(target=call_until, args=(fleet.hub.base, keys[number % len(keys)], stop, tally))
        for number in range(CALLERS)
    ]
    for thread in threads:
        thread.start()
    try:
        every = max(1, workers // max(1, hosts))
        for number in range(max(workers, hosts * every)):
            if number < workers:
                kills.append(fleet.kill_worker())
            if (number + 1) % every == 0 and sum(kill.kind == "host" for kill in kills) < hosts:
                kills.append(fleet.kill_host())
            print(f"{len(kills)} killed, answers: {dict(tally.answers)}", flush=True)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return tally, kills


def find_strangers(fleet: HostFleet, kills: list[Kill]) -> list[str]:
    """Calls whose outcome is unknown although nothing that had them was killed."""
    workers = {kill.name: kill for kill in kills if kill.kind == "worker"}
    hosts = [kill for kill in kills if kill.kind == "host"]
    found = []
    for call, _, worker, started, finished, box in fleet.ask(f"{CALLS} WHERE i.state = %s", UNKNOWN):
        of_worker = (
            worker in workers
            and started.timestamp() <= workers[worker].ended_at
            and (finished is None or finished.timestamp() >= workers[worker].began_at)
        )
        of_host = finished is not None and any(
            box == kill.name and started.timestamp() <= kill.ended_at and kill.began_at <= finished.timestamp()
            for kill in hosts
        )
        if not of_worker and not of_host:
            found.append(f"{call} of {worker}, {started} to {finished}, {box}")
    return found


def list_boxes(instance: str) -> set[str]:
    return set(
        read_output("docker", "ps", "--all", "--quiet", "--filter", f"label=toolhub.instance={instance}").split()
    )


def count_boxes_left(fleet: HostFleet, kills: list[Kill]) -> int:
    """Boxes of killed daemons that are there when they had the time to go."""
    killed = set[str]().union(*(kill.boxes for kill in kills))
    until = time.monotonic() + BOXES_GONE_S
    while (left := killed & set[str]().union(*map(list_boxes, fleet.instances))) and time.monotonic() < until:
        time.sleep(0.5)
    return len(left)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak_hosts", description=__doc__)
    parser.add_argument("--workers", type=int, default=50, help="that are killed (default 50)")
    parser.add_argument("--hosts", type=int, default=10, help="daemons that are killed (default 10)")
    asked = parser.parse_args()
    print_table("Machine", ("", ""), describe_machine())
    try:
        with run_fleet() as fleet:
            tally, kills = run_soak(fleet, asked.workers, asked.hosts)
            boxes = count_boxes_left(fleet, kills)
            until = time.monotonic() + 4 * LEASE_S + 60
            while (left := int(fleet.ask(OPEN)[0][0])) and time.monotonic() < until:
                time.sleep(0.5)
            strangers = find_strangers(fleet, kills)
            unknown = int(fleet.ask(f"SELECT count(*) FROM invocations_invocation WHERE state = '{UNKNOWN}'")[0][0])
            counts = [int(fleet.ask(query)[0][0]) for query in (UNPAIRED, RESERVED, TWICE, FINDINGS)]
    except KeyError as error:
        print(f"\n{error} is not set. Type:  python3 -m scripts.provision measure bench.soak_hosts", file=sys.stderr)
        return 1
    except CannotMeasure as error:
        print(f"\nIt could not be found out. {error}", file=sys.stderr)
        return 1
    most = sum(kill.had for kill in kills)
    print_table("Answers", ("", "calls"), [[name, str(count)] for name, count in sorted(tally.answers.items())])
    for sentence in [*tally.wrong, *strangers][:20]:
        print(f"WRONG  {sentence}")
    unpaired, reserved, twice, findings = counts
    verdicts = [
        judge_count(f"unknown outcomes, of {most} calls that what was killed may have had", unknown, most),
        judge_count("unknown outcomes of calls that nothing killed had: 0", len(strangers), 0),
        judge_count("answers that should have been others: 0", len(tally.wrong), 0),
        judge_count("calls that did not end: 0", left, 0),
        judge_count("calls that a tool had twice: 0", twice, 0),
        judge_count("calls without their pair: 0", unpaired, 0),
        judge_count("reserved in budgets at the end: 0", reserved, 0),
        judge_count("findings of the verifier: 0", findings, 0),
        judge_count(f"boxes of killed daemons that are left after {BOXES_GONE_S} s: 0", boxes, 0),
    ]
    print_table("Verdict", ("figure", "measured", ""), verdicts)
    return 2 if any(line[-1] == "NOT reached" for line in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())

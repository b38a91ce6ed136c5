"""Soak of the whole hub: whether calls are answered as they should for long, and nothing grows or cries wolf.

A mixed load over HTTP on both shapes at once: several tenants and agents, calls that are waited for, that are fetched later, that are
repeated with their key, that are refused, wrong or cancelled. Meanwhile facts are sealed and verified, and the keys of logs and of
stored values are rotated. Exit status 2 when an answer was not what it should be, something grew, the
verifier accused anybody, a log names a fault or too little was done to know; 1 when it could not be found out.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench.figures import CannotMeasure, MeasuredTimes, describe_machine, print_table
from bench.hubs import describe_database, run_python
from bench.soak_deployments import EMBEDDED, PRODUCTION, UPKEEP, open_deployment, run_upkeep, wait_for_seals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bench.soak_deployments import SoakDeployment, SoakUpkeep

CALLERS = 8
# Per cent of the calls.
SHARES = {"waited for": 55, "fetched later": 12, "repeated": 15, "refused": 8, "wrong": 6, "cancelled": 4}
LOOKS = 10
WARM_SHARE = 0.3  # of the time; what grows before counts as warming up
UPKEEP_TURNS = 18  # commands on keys and logs in the whole time: each three times
MAY_GROW = {"MiB": 25, "threads": 4, "files": 12, "connections": 4, "keys": 20}
FINAL = ("succeeded", "failed", "timed_out", "cancelled", "outcome_unknown")
UNPAIRED = """
    SELECT count(*) FROM invocations_invocation i WHERE (SELECT count(*) FROM evidence_fact f WHERE f.invocation_id = i.id
        AND f.kind IN ('invocation.began', 'invocation.ended')) <> 2
"""
RESERVED = "SELECT COALESCE(sum(reserved), 0) FROM access_budgetwindow"
FINDINGS = """
    SELECT (SELECT COALESCE(sum(found), 0) FROM evidence_verification)
         + (SELECT count(*) FROM evidence_fact WHERE kind = 'verification.failed')
"""
VERIFIED = "SELECT COALESCE(sum(position), 0) FROM evidence_verification"
SHAPES = (EMBEDDED, PRODUCTION)


@dataclass(slots=True)
class SoakTally:
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


class SoakCaller:
    """One agent's connection, which is kept."""

    def __init__(self, base: str, key: str, seed: str, found: SoakTally) -> None:
        self._connection = http.client.HTTPConnection(base, timeout=90)
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


def run_soak(shape: SoakDeployment, minutes: float, seed: int) -> int:
    keys: list[str] = json.loads(run_python(shape.env, "-m", "bench.soak_tenants").splitlines()[-1])
    found, until = SoakTally(), time.monotonic() + minutes * 60
    failures: list[str] = []

    def work(number: int) -> None:
        caller = SoakCaller(shape.base, keys[number % len(keys)], f"{seed}-{number}", found)
        try:
            while time.monotonic() < until:
                caller.one()
        except Exception as error:  # noqa: BLE001  one caller that fails is a finding, and ends no other
            failures.append(f"caller {number}: {error!r}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CALLERS)]
    with run_upkeep(shape, minutes * 60 / UPKEEP_TURNS, seed) as upkeep:
        for thread in threads:
            thread.start()
        looks = take_samples(shape, minutes * 60)
        for thread in threads:
            thread.join()
    unsealed = wait_for_seals(shape)
    upkeep.command("verify_log")
    rows = [MeasuredTimes(kind, ms).row() for kind, ms in sorted(found.took.items())]
    done = sum(len(ms) for ms in found.took.values())
    print_table(
        f"{shape.name}: {done} calls by {CALLERS} callers in {minutes:g} minutes, milliseconds",
        ("calls", "N", "min", "p50", "p95"),
        rows,
    )
    print_table(
        "How they were answered", ("", "calls"), [[name, str(count)] for name, count in sorted(found.answers.items())]
    )
    print_table(
        "What there was", ("after s", *(f"{at:.0f}" for at, _ in looks)), build_table([each for _, each in looks])
    )
    faults = shape.fault_lines()
    for sentence in [*found.wrong, *failures, *upkeep.wrong, *faults][:40]:
        print(f"WRONG  {sentence[:1000]}")
    verdicts = [
        *judge_activity(done, shape.ask(VERIFIED), upkeep),
        judge_count("answers that should have been others: 0", len(found.wrong) + len(failures), 0),
        judge_count("calls without their pair: 0", shape.ask(UNPAIRED), 0),
        judge_count("reserved in budgets at the end: 0", shape.ask(RESERVED), 0),
        judge_count("facts that were not sealed: 0", unsealed, 0),
        judge_count("findings of the verifier: 0", shape.ask(FINDINGS), 0),
        judge_count(f"commands on keys and logs that failed, of {upkeep.done}: 0", len(upkeep.wrong), 0),
        judge_count("lines of the logs that name a fault: 0", len(faults), 0),
        *judge_growth([each for _, each in looks]),
    ]
    print_table("Verdict", ("figure", "measured", ""), verdicts)
    return 2 if any(line[-1] == "NOT reached" for line in verdicts) else 0


def take_samples(shape: SoakDeployment, seconds: float) -> list[tuple[float, dict[str, float]]]:
    """What there is at some moments of the time, the first when all is warm."""
    begun, looks = time.monotonic(), []
    for number in range(LOOKS + 1):
        at = seconds * (WARM_SHARE + (0.98 - WARM_SHARE) * number / LOOKS)
        time.sleep(max(0.0, begun + at - time.monotonic()))
        looks.append((at, shape.look()))
    return looks


def build_table(looks: Sequence[dict[str, float]]) -> list[list[str]]:
    return [[name, *(f"{each[name]:.0f}" for each in looks)] for name in looks[0]]


def judge_growth(looks: Sequence[dict[str, float]]) -> list[list[str]]:
    """The least of the last looks against the most of the first: what goes up and down does not count."""
    rows = []
    for name in looks[0]:
        most = MAY_GROW[name.split()[-1]]
        more = min(each[name] for each in looks[-3:]) - max(each[name] for each in looks[:3])
        rows.append(judge_count(f"{name} more than when warm (at most {most})", round(more), most))
    return rows


def judge_count(what: str, measured: int, most: int) -> list[str]:
    return [what, str(measured), "reached" if measured <= most else "NOT reached"]


def judge_activity(calls: int, verified: int, upkeep: SoakUpkeep) -> list[list[str]]:
    """Where nothing was done, nothing went wrong: that is no good end."""
    wanted = (
        ("calls: of each caller one at least", calls, CALLERS),
        ("leaves that the verifier has looked at: 1 at least", verified, 1),
        ("commands on keys and logs: each once at least", upkeep.done, len(UPKEEP)),
    )
    return [[what, str(done), "reached" if done >= least else "NOT reached"] for what, done, least in wanted]


def run_both_soaks(words: Sequence[str]) -> int:
    """Both shapes at once, each by a process of its own: each is the other's busy machine."""
    command = [sys.executable, "-m", "bench.soak_hub", *words]
    begun = [subprocess.Popen([*command, "--shape", name], stdout=subprocess.PIPE, text=True) for name in SHAPES]
    for process in begun:
        print(process.communicate()[0], flush=True)
    for name, process in zip(SHAPES, begun, strict=True):
        if process.returncode not in (0, 1, 2):
            print(f"The soak of the shape {name} died: exit status {process.returncode}.", file=sys.stderr)
    return combine_statuses(process.returncode for process in begun)


def combine_statuses(statuses: Iterable[int]) -> int:
    """Below 0 stands the signal that ended a process: who died has found out nothing."""
    found = set(statuses)
    return 2 if 2 in found else int(found != {0})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak_hub", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="(default 30)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="the same calls again")
    parser.add_argument("--shape", choices=SHAPES, help="only this one (default: both at once)")
    asked = parser.parse_args()
    try:
        if asked.shape is None:
            return run_both_soaks(["--minutes", str(asked.minutes), "--seed", str(asked.seed)])
        server = describe_database(os.environ["TOOLHUB_TEST_DATABASE_URL"]) if asked.shape == PRODUCTION else []
        print_table("Machine", ("", ""), [*describe_machine(), *server, ("seed", str(asked.seed))])
        with open_deployment(asked.shape) as shape:
            return run_soak(shape, asked.minutes, asked.seed)
    except KeyError as error:
        print(f"\n{error} is not set. Type:  make soak", file=sys.stderr)
        return 1
    except CannotMeasure as error:
        print(f"\nIt could not be found out. {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""Models: what a governed call of a model adds to the provider's own time, what a budget holds back, and whether many streams last.

The provider itself, the hub in the production shape on a durable PostgreSQL, and LiteLLM's proxy before the same provider are asked in
turn, in one run: ``make bench ARGS="--only models"``, or ``python -m bench.models`` where the services run already.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from bench.figures import ROOT, CannotMeasure, MeasuredTimes, judge_figure, print_table, run_part
from bench.governed_calls import run_production
from bench.hubs import describe_database, find_free_port, run_python
from bench.litellm_peer import run_litellm
from bench.model_callers import ModelDoor, StreamCaller, StreamTimes, ask_at_once, ask_once
from bench.model_provider import FIRST_TOKEN_S, TOKENS_PER_S
from bench.soak_deployments import measure_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.governed_calls import ProductionHub
    from bench.litellm_peer import LitellmProxy

DIRECT, HUB = "the provider itself", "the hub"
WARM = 5
AT_ONCE, ROOM_FOR = 200, 10
STREAMS, LOOKS = 100, 20
SOAK_TOKENS_PER_S = 20.0
MAY_GROW_MIB = 25
ADDED_MS, P95_TIMES, RATE_LOSS = 15.0, 1.5, 0.05
HEAD = ("milliseconds", "N", "min", "p50", "p95", "p50 : direct", "p95 : direct")
PAIRS = """
    SELECT count(*), count(*) FILTER (WHERE facts = 2) FROM (
        SELECT count(f.id) AS facts FROM invocations_invocation i LEFT JOIN evidence_fact f
            ON f.invocation_id = i.id AND f.kind IN ('invocation.began', 'invocation.ended')
        WHERE i.tool LIKE 'model.%' GROUP BY i.id) AS calls
"""


@contextmanager
def run_provider(tokens_per_s: float = TOKENS_PER_S) -> Iterator[str]:
    port = find_free_port()
    words = [sys.executable, "-m", "bench.model_provider", str(port), str(tokens_per_s)]
    process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 30
        while True:
            try:
                count_asked(url)
                break
            except OSError:
                if time.monotonic() > until:
                    raise CannotMeasure("The provider did not start.") from None
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def count_asked(url: str) -> int:
    """How many requests came to the provider since this was asked last."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/journal", timeout=10) as response:
        return int(json.load(response)["asked"])


@contextmanager
def run_hub(provider_url: str) -> Iterator[tuple[ProductionHub, ModelDoor]]:
    """The production shape with the provider's model, and the way in for an agent that may call it."""
    url, redis_url = os.environ["TOOLHUB_TEST_DATABASE_URL"], os.environ["TOOLHUB_TEST_REDIS_URL"]
    near = {"TOOLHUB_OUTBOUND_NETWORKS": "127.0.0.0/8", "TOOLHUB_LOG_LEVEL": "WARNING"}
    with run_production(url, redis_url, kept=False, **near) as hub:
        key = json.loads(run_python(hub.env, "-m", "bench.model_setup", provider_url).splitlines()[-1])["key"]
        path = "/api/v1/models/model.bench.main/chat"
        yield hub, ModelDoor(HUB, hub.base, path, key, b"event: end", is_hub=True)


def compare_doors(doors: list[ModelDoor], rounds: int) -> dict[str, list[StreamTimes]]:
    """Each in turn, each round beginning with another, so that none is always the first or behind the same one."""
    callers = {door.name: StreamCaller(door) for door in doors}
    found: dict[str, list[StreamTimes]] = {name: [] for name in callers}
    names = list(callers)
    for number in range(-WARM, rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            took = callers[name].call()
            if number >= 0:
                found[name].append(took)
    return found


def report_overhead(found: dict[str, list[StreamTimes]]) -> list[list[str]]:
    first = {name: MeasuredTimes(name, [each.first_token for each in times]) for name, times in found.items()}
    total = {name: MeasuredTimes(name, [each.total for each in times]) for name, times in found.items()}
    rates = {name: MeasuredTimes(name, [each.tokens_per_s for each in times]) for name, times in found.items()}
    for title, times in (("Time to the first token", first), ("Time to the end of the answer", total)):
        direct = times[DIRECT]
        rows = [each.row(f"{each.p50 / direct.p50:.2f} ×", f"{each.p95 / direct.p95:.2f} ×") for each in times.values()]
        print_table(
            f"{title}, one caller, in turn; the provider's first token after {FIRST_TOKEN_S * 1000:.0f} ms", HEAD, rows
        )
    print_table(
        "Tokens a second, from the first to the last",
        ("", "p50", "p50 : direct"),
        [[name, f"{each.p50:.0f}", f"{each.p50 / rates[DIRECT].p50:.3f} ×"] for name, each in rates.items()],
    )
    added = first[HUB].p50 - first[DIRECT].p50
    ratio = first[HUB].p95 / first[DIRECT].p95
    rate = rates[HUB].p50 / rates[DIRECT].p50
    verdicts = [
        judge_figure(f"hub: first token ≤ {ADDED_MS:g} ms later (p50)", f"{added:.1f} ms", reached=added <= ADDED_MS),
        judge_figure(f"hub: first token ≤ {P95_TIMES:g} × direct (p95)", f"{ratio:.2f} ×", reached=ratio <= P95_TIMES),
        judge_figure(
            f"hub: streamed rate within {RATE_LOSS:.0%}", f"{rate - 1:+.1%}", reached=abs(rate - 1) <= RATE_LOSS
        ),
    ]
    for name in found.keys() - {DIRECT, HUB}:
        for what, measured in (("first token", first), ("total", total)):
            for which in ("p50", "p95"):
                ours, theirs = getattr(measured[HUB], which), getattr(measured[name], which)
                verdicts.append(
                    judge_figure(
                        f"hub: {what} ≤ {name} ({which})", f"{ours:.1f} : {theirs:.1f} ms", reached=ours <= theirs
                    )
                )
    return verdicts


def judge_pairs(hub: ProductionHub) -> list[str]:
    with psycopg.connect(hub.database) as connection:
        row = connection.execute(PAIRS).fetchone()
    calls, paired = row or (0, 0)
    return judge_figure(
        "hub: model calls with their Begin and their End", f"{paired} of {calls}", reached=0 < calls == paired
    )


def measure_overspend(hub: ProductionHub, door: ModelDoor, url: str, proxy: LitellmProxy | None) -> list[list[str]]:
    """As many calls at once against money for a few: how many come to the provider?"""
    cost = find_cost(door)
    run_python(hub.env, "-m", "bench.model_setup", "limit", str(ROOM_FOR * cost))
    rows, verdicts = [], []
    for each in [
        door,
        *([proxy.open_door(proxy.make_key(ROOM_FOR * cost / 1e6))] if proxy and not proxy.without_database else []),
    ]:
        count_asked(url)
        answers = asyncio.run(ask_at_once(each, AT_ONCE))
        asked = count_asked(url)
        rows.append([each.name, str(asked), str(sum(whole for _, whole in answers)), describe_statuses(answers)])
        what = f"{each.name}: {AT_ONCE} calls at once, money for {ROOM_FOR}: asked at most {ROOM_FOR} ×"
        verdicts.append(judge_figure(what, str(asked), reached=0 < asked <= ROOM_FOR))
    print_table(
        f"{AT_ONCE} calls at once against money for {ROOM_FOR} of them ({cost} millionths each)",
        ("", "came to the provider", "whole answers", "statuses"),
        rows,
    )
    if proxy is None or proxy.without_database:
        print(
            f"What LiteLLM does with a budget is NOT measured: {proxy.without_database if proxy else 'it is not there'}."
        )
    return verdicts[:1]  # what the peer does is said, and is no figure of ours


def find_cost(door: ModelDoor) -> int:
    """What one call costs, in millionths, by the hub's own account."""
    text = StreamCaller(door).read_end()
    cost = json.loads(text)["data"]["usage"]["cost_micros"]
    if not cost:
        raise CannotMeasure("The hub knows no price of the model, so no budget of money can be measured.")
    return int(cost)


def describe_statuses(answers: list[tuple[int, bool]]) -> str:
    statuses = [status for status, _ in answers]
    return ", ".join(f"{statuses.count(each)} × {each or 'no answer'}" for each in sorted(set(statuses)))


@dataclass(slots=True)
class StreamTally:
    whole: int = 0
    failed: int = 0


async def keep_streaming(door: ModelDoor, until: float, tally: StreamTally) -> None:
    while time.monotonic() < until:
        try:
            status, is_whole = await ask_once(door)
        except (OSError, IndexError, ValueError):
            status, is_whole = 0, False
        if status == 200 and is_whole:
            tally.whole += 1
        else:
            tally.failed += 1


async def watch_memory(pid: int, seconds: float) -> list[float]:
    looks = []
    for _ in range(LOOKS):
        await asyncio.sleep(seconds / LOOKS)
        looks.append(measure_process(pid, "web")["MiB"])
    return looks


def soak_streams(minutes: float) -> list[list[str]]:
    """Many answers at once for long: is each whole, and does the web process stay as large as it is?"""
    with run_provider(SOAK_TOKENS_PER_S) as url, run_hub(url) as (hub, door):
        tally, seconds = StreamTally(), minutes * 60
        StreamCaller(door).call()  # the first imports what talks to the provider

        async def run() -> list[float]:
            until = time.monotonic() + seconds
            streams = [asyncio.create_task(keep_streaming(door, until, tally)) for _ in range(STREAMS)]
            looks = await watch_memory(hub.processes["web"], seconds)
            await asyncio.gather(*streams)
            return looks

        looks = asyncio.run(run())
        pairs = judge_pairs(hub)
    print_table(
        f"{STREAMS} streams at once for {minutes:g} minutes: {tally.whole} whole answers",
        ("MiB of the web process", *(f"{seconds * (at + 1) / LOOKS:.0f} s" for at in range(0, LOOKS, 2))),
        [["", *(f"{each:.0f}" for each in looks[::2])]],
    )
    third = LOOKS // 3
    grown = min(looks[-third:]) - max(looks[third : 2 * third])
    return [
        judge_figure(
            f"{STREAMS} streams at once: 0 failed", str(tally.failed), reached=tally.failed == 0 < tally.whole
        ),
        judge_figure(
            f"web process: the last third at most {MAY_GROW_MIB} MiB over the second",
            f"{grown:+.0f} MiB",
            reached=grown <= MAY_GROW_MIB,
        ),
        pairs,
    ]


def measure_models(rounds: int, minutes: float) -> list[list[str]]:
    """All of it. LiteLLM is left out where it cannot be had, and that is said."""
    url = os.environ["TOOLHUB_TEST_DATABASE_URL"]
    with ExitStack() as opened:
        provider = opened.enter_context(run_provider())
        hub, door = opened.enter_context(run_hub(provider))
        doors = [
            ModelDoor(DIRECT, provider.removeprefix("http://"), "/v1/chat/completions", "sk-bench", b"[DONE]"),
            door,
        ]
        proxy: LitellmProxy | None = None
        try:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="litellm-bench-")))
            proxy = opened.enter_context(run_litellm(provider, url, folder))
            doors.append(proxy.open_door())
        except CannotMeasure as error:
            print(f"\nLiteLLM is NOT measured: {error}")
        verdicts = report_overhead(compare_doors(doors, rounds))
        verdicts += measure_overspend(hub, door, provider, proxy)
        verdicts.append(judge_pairs(hub))
    return verdicts + (soak_streams(minutes) if minutes else [])


def main() -> int:
    """Only this part of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.models", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="of the comparison (default 100)")
    parser.add_argument("--minutes", type=float, default=10, help=f"of {STREAMS} streams at once (default 10; 0: none)")
    asked = parser.parse_args()
    return run_part(
        lambda: measure_models(asked.rounds, asked.minutes),
        describe_services=lambda: describe_database(os.environ["TOOLHUB_TEST_DATABASE_URL"]),
    )


if __name__ == "__main__":
    sys.exit(main())

"""Sandbox hosts: what it costs that a daemon apart from the worker holds the engine.

``python -m bench.sandbox_hosts [--rounds N] [--seconds S]``. The same call in this process, over a unix socket and under TLS, by turns
in the same minutes; the daemon is a process of its own, with the same engine. Then governed calls of three hubs, whose workers
reach their boxes in these ways.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bench.figures import CannotMeasure, MeasuredTimes, describe_machine, judge_figure, print_table
from bench.governed_calls import RestCaller, measure_load, run_production
from bench.sandbox_harness import TRIVIAL, BenchTool, get_image_name, make_call, open_sandbox
from invocations.sandbox.egress import EgressGate
from invocations.sandbox.remote.connection import HostAddress
from invocations.sandbox.remote.host import RemoteHost
from invocations.sandbox.remote.sandbox import RemoteSandbox
from invocations.sandbox.wire.certificate_authority import CertificateAuthority
from invocations.sandbox.wire.identities import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from invocations.sandbox.base import Sandbox
    from invocations.sandbox.wire.identities import IdentityFiles

ROOT = Path(__file__).resolve().parents[1]
HERE, UNIX, TLS = "in process", "boxd, unix socket", "boxd, TLS both ways"
P50_MORE_MS, P95_MORE_MS, THROUGHPUT = 0.3, 1.0, 0.95
ROUNDS_OF_LOAD = 6
_WORKER, _HOST = "worker", "localhost"
_CALLS, _WARM, _CALLERS, _BURST = 20, 10, 4, 40
_GOVERNED_CALLERS = 16
_DATABASE, _REDIS = "TOOLHUB_TEST_DATABASE_URL", "TOOLHUB_TEST_REDIS_URL"


@dataclass(frozen=True)
class _Daemon:
    """A daemon that runs, and what a worker needs to reach it. ``addresses``: by way."""

    addresses: dict[str, str]
    files: IdentityFiles


@contextmanager
def _run_daemon() -> Iterator[_Daemon]:
    with tempfile.TemporaryDirectory(prefix="toolhub-bench-") as folder:
        place = Path(folder)
        authority = CertificateAuthority(place / "certificates")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with _start_daemon(place, authority, port):
            addresses = {UNIX: f"unix://{place}/boxd.sock", TLS: f"tls://{_HOST}:{port}"}
            yield _Daemon(addresses, authority.issue_for_worker(_WORKER))


@contextmanager
def _open_ways() -> Iterator[dict[str, Sandbox]]:
    with ExitStack() as stack:
        ways: dict[str, Sandbox] = {HERE: stack.enter_context(open_sandbox(gate=EgressGate()))}
        daemon = stack.enter_context(_run_daemon())
        worker = Identity(daemon.files, serves=False)
        for name, url in daemon.addresses.items():
            sandbox = RemoteSandbox([RemoteHost(HostAddress(url), worker)], load_s=60)
            stack.callback(sandbox.close)
            ways[name] = sandbox
        yield ways


@contextmanager
def _start_daemon(place: Path, authority: CertificateAuthority, port: int) -> Iterator[None]:
    files = authority.issue_for_host(_HOST)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TOOLHUB_")}
    environment = kept | {
        "TOOLHUB_ENV_FILE": "",
        "TOOLHUB_SANDBOX_IMAGE": get_image_name(),
        "TOOLHUB_INSTANCE": f"bench-boxd-{os.getpid()}",
        "TOOLHUB_DATA_DIR": str(place / "data"),
        "TOOLHUB_SANDBOX_RUN_DIR": str(place / "run"),
        "TOOLHUB_BOXD_SOCKET": str(place / "boxd.sock"),
        "TOOLHUB_BOXD_BIND": f"127.0.0.1:{port}",
        "TOOLHUB_BOXD_WORKERS": _WORKER,
        "TOOLHUB_SANDBOX_TLS_CA": str(files.authority),
        "TOOLHUB_SANDBOX_TLS_CERTIFICATE": str(files.certificate),
        "TOOLHUB_SANDBOX_TLS_KEY": str(files.key),
    }
    command = [sys.executable, "-m", "toolhub.boxd"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as daemon:
        assert daemon.stderr is not None
        said = []
        while "Answers at the socket" not in (line := daemon.stderr.readline()):
            said.append(line)
            if not line and daemon.poll() is not None:
                raise CannotMeasure("".join(said))
        try:
            yield
        finally:
            daemon.terminate()
            daemon.communicate()


def measure_hosts(rounds: int) -> tuple[dict[str, MeasuredTimes], dict[str, float]]:
    """Milliseconds of a warm ``shared`` call by way, with one caller; and calls a second, with four."""
    tool = BenchTool.of(TRIVIAL)
    with _open_ways() as ways:
        times: dict[str, list[float]] = {name: [] for name in ways}
        burst_s = dict.fromkeys(ways, 0.0)
        for sandbox in ways.values():
            with ThreadPoolExecutor(_CALLERS) as pool:  # as many boxes as there are callers
                list(pool.map(lambda _, where=sandbox: make_call(where, tool, "shared"), range(_BURST)))
        for number in range(rounds):
            names = list(ways)
            shift = number % len(names)
            for name in names[shift:] + names[:shift]:
                for count in range(_WARM + _CALLS):
                    begun = time.perf_counter()
                    make_call(ways[name], tool, "shared")
                    if count >= _WARM:
                        times[name].append((time.perf_counter() - begun) * 1000)
                begun = time.perf_counter()
                with ThreadPoolExecutor(_CALLERS) as pool:
                    list(pool.map(lambda _, where=ways[name]: make_call(where, tool, "shared"), range(_BURST)))
                burst_s[name] += time.perf_counter() - begun
    per_s = {name: rounds * _BURST / seconds for name, seconds in burst_s.items()}
    return {name: MeasuredTimes(name, ms) for name, ms in times.items()}, per_s


def measure_governed(rounds: int, seconds: float) -> dict[str, list[float]]:
    """Governed calls a second with sixteen callers, by way and round."""
    with ExitStack() as stack:
        daemon = stack.enter_context(_run_daemon())
        secured = {
            "TOOLHUB_SANDBOX_TLS_CA": str(daemon.files.authority),
            "TOOLHUB_SANDBOX_TLS_CERTIFICATE": str(daemon.files.certificate),
            "TOOLHUB_SANDBOX_TLS_KEY": str(daemon.files.key),
        }
        settings: dict[str, dict[str, str]] = {HERE: {}} | {
            name: secured | {"TOOLHUB_SANDBOX_HOSTS": url} for name, url in daemon.addresses.items()
        }
        url, redis_url = os.environ[_DATABASE], urlsplit(os.environ[_REDIS])
        hubs = {  # each with a database of its own at Redis, where the calls of all would come to all workers
            name: stack.enter_context(
                run_production(url, redis_url._replace(path=f"/{at}").geturl(), kept=False, **each)
            )
            for at, (name, each) in enumerate(settings.items())
        }
        rates: dict[str, list[float]] = {name: [] for name in hubs}
        for number in range(rounds + 1):
            for name in list(hubs) if number % 2 else list(hubs)[::-1]:
                rate, _, failed = measure_load(partial(RestCaller, hubs[name]), _GOVERNED_CALLERS, seconds)
                if failed:
                    raise CannotMeasure(f"Calls {name} failed: {dict(failed)}")
                if number:  # the first round makes the boxes
                    rates[name].append(rate)
        return rates


def _print_governed(rounds: int, seconds: float) -> list[list[str]]:
    rates = {name: statistics.median(found) for name, found in measure_governed(rounds, seconds).items()}
    rows = [[name, f"{rate:.1f}", f"{rate / rates[HERE]:.2f} ×"] for name, rate in rates.items()]
    print_table(
        f"Governed calls, {_GOVERNED_CALLERS} callers, median of {rounds} interleaved rounds of {seconds:g} s",
        ("the worker reaches its boxes", "calls/s", "of it"),
        rows,
    )
    return [
        judge_figure(
            f"{name}: throughput of governed calls ≥ {THROUGHPUT} ×",
            f"{rates[name] / rates[HERE]:.2f} ×",
            reached=rates[name] / rates[HERE] >= THROUGHPUT,
        )
        for name in (UNIX, TLS)
    ]


def main(rounds: int, seconds: float) -> None:
    print(describe_machine())
    times, per_s = measure_hosts(rounds)
    base = times[HERE]
    rows = [
        each.row(
            f"{each.p50 - base.p50:+.2f}",
            f"{each.p95 - base.p95:+.2f}",
            f"{per_s[name]:.0f}",
            f"{per_s[name] / per_s[HERE]:.2f} ×",
        )
        for name, each in times.items()
    ]
    head = ("milliseconds", "N", "min", "p50", "p95", "p50 more", "p95 more", f"calls/s, {_CALLERS} callers", "of it")
    print_table(f"A warm `shared` call, {rounds} interleaved rounds", head, rows)
    judged = []
    for name in (UNIX, TLS):
        p50, p95 = times[name].p50 - base.p50, times[name].p95 - base.p95
        part = per_s[name] / per_s[HERE]
        judged += [
            judge_figure(f"{name}: p50 ≤ +{P50_MORE_MS} ms", f"{p50:+.2f} ms", reached=p50 <= P50_MORE_MS),
            judge_figure(f"{name}: p95 ≤ +{P95_MORE_MS} ms", f"{p95:+.2f} ms", reached=p95 <= P95_MORE_MS),
            judge_figure(f"{name}: throughput ≥ {THROUGHPUT} ×", f"{part:.2f} ×", reached=part >= THROUGHPUT),
        ]
    judged += _print_governed(ROUNDS_OF_LOAD, seconds)
    print_table("Demands", ("figure", "found", "reached"), judged)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="of single calls and bursts (default 20)")
    parser.add_argument("--seconds", type=float, default=5, help="of each load of governed calls (default 5)")
    words = parser.parse_args()
    main(words.rounds, words.seconds)

"""Probes: does a process that serves no requests say so when one of its loops has ended?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.wire import request
from toolhub.probes import server as server_module
from toolhub.probes.server import serve_probes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def loops() -> Iterator[dict[str, threading.Thread]]:
    """One loop that goes on, and one that has ended."""
    stop = threading.Event()
    what: dict[str, Callable[[], object]] = {"sealer": stop.wait, "verifier": lambda: None}
    found = {name: threading.Thread(target=loop, name=name) for name, loop in what.items()}
    for thread in found.values():
        thread.start()
    found["verifier"].join()
    yield found
    stop.set()
    found["sealer"].join()


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize(
    ("named", "is_ending", "status", "checks"),
    [
        (("sealer",), False, 200, {"sealer": "ok"}),
        (("sealer", "verifier"), False, 503, {"sealer": "ok", "verifier": "ended by itself"}),
        (("sealer", "verifier"), True, 200, {"sealer": "ok", "verifier": "ok"}),
    ],
)
def test_a_process_lives_as_long_as_all_of_its_loops_do(
    named: tuple[str, ...],
    is_ending: bool,
    status: int,
    checks: dict[str, str],
    loops: dict[str, threading.Thread],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draining = threading.Event()
    monkeypatch.setattr(server_module, "DRAINING", draining)
    if is_ending:
        draining.set()
    settings.TOOLHUB_PROBE_BIND = "127.0.0.1:0"
    server = serve_probes([loops[name] for name in named])
    assert server is not None
    try:
        answer = request("GET", f"http://127.0.0.1:{server.server_address[1]}/healthz")
    finally:
        server.shutdown()
        server.server_close()

    assert answer.status == status
    assert answer.json() == {"ok": status == 200, "checks": checks}

"""The service way from inside a real box: is the interpreter's request the one that the service gets, and its answer the result?"""

from __future__ import annotations

import gzip
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import BoxKey, Limits, Profile, RunOutcome, RunStatus, SandboxCall
from registry.secrets.encodings import list_secret_forms
from tests.egress.services import Service, answer_with, serving
from tests.egress.world import HOST, Authority, tls
from unitools.capabilities import Capabilities
from unitools.packages import zip_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.base import Sandbox
    from invocations.sandbox.docker import DockerSandbox

pytestmark = pytest.mark.attack
LEVELS = ("shared", "fresh", "single")
TOKEN = "t0ken-of-the-tenant-4711"
OPERATION: dict[str, Any] = {
    "method": "POST",
    "path": "/repos/{owner}/issues",
    "arguments": [
        {"argument": "owner", "in": "path", "name": "owner"},
        {"argument": "page", "in": "query", "name": "page"},
        {"argument": "title", "in": "body", "name": "title"},
    ],
    "body": {"media_type": "application/json"},
    "credentials": [{"secret": "TOKEN", "in": "header", "name": "Authorization", "scheme": "bearer"}],
    "accept": ["application/json"],
    "strict": False,
}
ARGUMENTS = {"owner": "octo", "page": 2, "title": "Hej & hå"}


@pytest.fixture
def ask(sandbox: Sandbox, request: pytest.FixtureRequest) -> Callable[..., RunOutcome]:
    """``ask(port, level, **arguments)``: one call of the operation; ``changed`` is another word of it."""

    def ask(
        port: int,
        level: str = "fresh",
        arguments: dict[str, Any] | None = None,
        changed: dict[str, Any] | None = None,
        wall_ms: int = 20_000,
        **net: Any,
    ) -> RunOutcome:
        operation = OPERATION | {"server": f"https://{HOST}:{port}/v1"} | (changed or {})
        call = SandboxCall(
            name=f"{request.node.name[:60]}-{port}",
            package=zip_files([]),
            module="",
            entry="",
            arguments=json.dumps(ARGUMENTS if arguments is None else arguments).encode(),
            context={
                "call_id": "inv_1",
                "started_at": "2026-01-01T00:00:00+00:00",
                "seed": "0",
                "idempotency_key": "idk_1",
            },
            secrets={"TOKEN": TOKEN},
            hidden={"TOKEN": (TOKEN,)},
            operation=operation,
            key=BoxKey("tenant", f"{request.node.name}/{port}"),
        )
        capabilities = Capabilities.from_json({"net": [tls(HOST, port) | {"methods": [operation["method"]]} | net]})
        return sandbox.run(Profile(Limits(wall_ms=wall_ms), capabilities, isolation=level), call)

    return ask


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize("level", LEVELS)
def test_an_operation_answers_and_its_secret_is_in_no_box(
    level: str, ask: Callable[..., RunOutcome], service: Service
) -> None:
    for _ in range(2):
        outcome = ask(service.port, level)

        assert (outcome.status, outcome.value) == (RunStatus.OK, {"status": 200, "body": {"ok": True}}), outcome
        assert outcome.clean
        assert outcome.attempts == ()
        (connection,) = outcome.connections
        assert connection.service is not None
        assert (connection.service.method, connection.service.path) == ("POST", "/v1/repos/{owner}/issues")
        assert (connection.service.status, connection.service.left, connection.service.complete) == (200, True, True)
    heard = service.requests(2)[-1].decode()
    assert heard.startswith("POST /v1/repos/octo/issues?page=2 HTTP/1.1\r\n")
    assert f"\r\nAuthorization: Bearer {TOKEN}\r\n" in heard
    assert json.loads(heard.partition("\r\n\r\n")[2]) == {"title": "Hej & hå"}


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("400 Bad Request", "INVALID_ARGUMENT"),
        ("404 Not Found", "NOT_FOUND"),
        ("409 Conflict", "CONFLICT"),
        ("401 Unauthorized", "UPSTREAM_ERROR"),
        ("429 Too Many Requests", "UPSTREAM_ERROR"),
        ("503 Service Unavailable", "UPSTREAM_ERROR"),
        ("302 Found", "UPSTREAM_ERROR"),
        ("500 Internal Server Error", "UPSTREAM_ERROR"),
    ],
)
def test_what_is_no_success_is_an_error_with_what_the_service_says(
    status: str, code: str, ask: Callable[..., RunOutcome], service: Service
) -> None:
    said = json.dumps({"message": "no such thing"}).encode()
    service.answers = [
        answer_with(
            said, status=status, content_type="application/json", retry_after="7", location="https://169.254.169.254/"
        )
    ]

    outcome = ask(service.port)

    assert (outcome.status, outcome.error_code) == (RunStatus.DOMAIN_ERROR, code), outcome
    number = int(status[:3])
    assert (outcome.error_details["status"], outcome.error_details["retry_after_s"]) == (number, 7)
    assert outcome.error_details.get("body") == (None if number == 302 else {"message": "no such thing"})
    assert service.connections == 1


@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answer_with(gzip.compress(bytes(64 << 20)), content_encoding="gzip"), id="gzip bomb"),
        pytest.param(answer_with(b"[" * 200_000, content_type="application/json"), id="nested"),
        pytest.param(answer_with(b"1" * 500_000, content_type="application/json"), id="a number"),
        pytest.param(answer_with(b"\xff\xfe\xff"), id="no text"),
        pytest.param(answer_with(b"{}", content_type="text/plain; charset=utf-7"), id="charset"),
        pytest.param(answer_with(b"<html>", content_type="text/html"), id="login page"),
        pytest.param(answer_with(b"x" * (2 << 20), content_type="text/plain"), id="long"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", id="cut off"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", id="endless"),
    ],
)
def test_a_hostile_answer_is_an_error_and_the_next_call_is_right(
    answer: bytes, ask: Callable[..., RunOutcome], service: Service
) -> None:
    service.answers = [answer, answer_with(b'"next"')]

    outcome = ask(service.port)
    after = ask(service.port)

    assert outcome.status is RunStatus.DOMAIN_ERROR, outcome
    assert outcome.error_code == "UPSTREAM_ERROR"
    assert (after.status, after.value) == (RunStatus.OK, {"status": 200, "body": "next"}), after


@pytest.mark.req("TOOLS-16")
def test_what_has_not_left_is_asked_for_again_and_what_has_left_is_not(
    ask: Callable[..., RunOutcome], authority: Authority
) -> None:
    context = authority.server_context(HOST)
    with serving(context, refuses=2) as service:
        outcome = ask(service.port)
    assert (outcome.status, outcome.value) == (RunStatus.OK, {"status": 200, "body": {"ok": True}}), outcome
    assert [each.service and each.service.left for each in outcome.connections] == [False, False, True]

    with serving(context, refuses=9) as service:
        outcome = ask(service.port)
    assert (outcome.status, outcome.error_code) == (RunStatus.DOMAIN_ERROR, "UPSTREAM_ERROR"), outcome
    assert [each.service and each.service.left for each in outcome.connections] == [False, False, False]

    with serving(context, hangs_up="head") as service:
        outcome = ask(service.port)
    assert outcome.error_details == {"gate": "answer_cut_off", "left": True}
    assert [each.service and each.service.left for each in outcome.connections] == [True]
    assert len(service.heard) == 1


@pytest.mark.req("TOOLS-3", "TOOLS-16")
def test_a_method_that_is_not_granted_is_blocked(ask: Callable[..., RunOutcome], service: Service) -> None:
    outcome = ask(service.port, methods=["GET"])

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, "net"), outcome
    assert service.connections == 0


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize("owner", ["..", "%2e%2e", "a/b", "a%2Fb", "a?b", ""])
def test_a_value_that_leads_out_of_the_path_is_refused_before_anybody_is_asked(
    owner: str, ask: Callable[..., RunOutcome], service: Service
) -> None:
    outcome = ask(service.port, arguments=ARGUMENTS | {"owner": owner})

    assert (outcome.status, outcome.error_code) == (RunStatus.DOMAIN_ERROR, "INVALID_ARGUMENT"), outcome
    assert outcome.connections == ()


@pytest.mark.req("TOOLS-16")
def test_a_key_travels_where_the_service_takes_it(ask: Callable[..., RunOutcome], service: Service) -> None:
    outcome = ask(service.port, changed={"idempotency_header": "Idempotency-Key"})

    assert outcome.status is RunStatus.OK, outcome
    assert b"\r\nIdempotency-Key: idk_1\r\n" in service.requests()[0]


def list_processes(box: str) -> list[Path]:
    """The places in /proc of all that runs in a container, as this host has them."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if box in (place / "cgroup").read_text():
                found.append(place)
    return found


def find_in_memory(process: Path, words: set[bytes]) -> set[bytes]:
    """Which of these stand in what the process can read of itself."""
    found: set[bytes] = set()
    with (process / "mem").open("rb", 0) as memory:
        for line in (process / "maps").read_text().splitlines():
            span, access, _, _, _, *name = line.split()
            start, end = (int(each, 16) for each in span.split("-"))
            if not access.startswith("rw") or name in (["[vvar]"], ["[vsyscall]"]):  # what is only read is of the image
                continue
            with suppress(OSError):
                memory.seek(start)
                before = b""
                while start < end and (piece := memory.read(min(1 << 20, end - start))):
                    found |= {word for word in words if word in before + piece}
                    before, start = piece[-200:], start + len(piece)
    return found


@pytest.mark.req("SVC-6", "BRING-1")
def test_the_secret_is_in_no_memory_file_environment_or_log_of_the_box(
    ask: Callable[..., RunOutcome],
    sandbox: Sandbox,
    engine_boxes: DockerSandbox,
    authority: Authority,
    request: pytest.FixtureRequest,
) -> None:
    """Looked at from outside, while the service keeps the call waiting: what was asked for is found there, and the secret is not."""
    half = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"a'
    asked = b"found-in-the-box"
    secrets = {form.encode() for form in list_secret_forms(TOKEN)}
    found: set[bytes] = set()
    with (
        serving(authority.server_context(HOST), answers=[half], hangs_up="never") as service,
        ThreadPoolExecutor(1) as threads,
    ):
        running = threads.submit(ask, service.port, arguments=ARGUMENTS | {"title": asked.decode()})
        assert TOKEN.encode() in service.requests()[0]
        boxes = [slot.box for slot in engine_boxes._pool.slots() if slot.box is not None]
        processes = [each for box in boxes for each in list_processes(box.id)]
        assert len(processes) > 3
        for process in processes:
            with suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                found |= find_in_memory(process, {asked, *secrets})
                said = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
                found |= {each for each in secrets if each in said}
        for file in (each for box in boxes if box.folder for each in box.folder.rglob("*")):
            found |= {each for each in secrets if file.is_file() and each in file.read_bytes()}
        for box in boxes:
            logged = subprocess.run(["docker", "logs", box.id], capture_output=True, check=False)  # it keeps none
            found |= {each for each in secrets if each in logged.stdout + logged.stderr}
        sandbox.kill(f"{request.node.name[:60]}-{service.port}")
        assert running.result().status is RunStatus.CANCELLED

    assert found == {asked}


@pytest.mark.req("TOOLS-16")
def test_a_call_that_is_over_says_that_its_request_had_left(
    ask: Callable[..., RunOutcome], authority: Authority
) -> None:
    waits = b"HTTP/1.1 100 Continue\r\n\r\n"
    with serving(authority.server_context(HOST), answers=[waits], hangs_up="never") as service:
        outcome = ask(service.port, wall_ms=1000)

    assert outcome.status is RunStatus.TIMED_OUT, outcome
    assert [each.service and (each.service.left, each.service.complete) for each in outcome.connections] == [
        (True, False)
    ]

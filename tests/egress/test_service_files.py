"""Files to and from a service, by real boxes and the gate: does the service get what was meant, and the call what was answered?"""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.http.multipartparser import MultiPartParser

from invocations.sandbox.base import BoxKey, Limits, Profile, RunStatus, SandboxCall, SentFile
from tests.egress.operations import TOKEN
from tests.egress.services import Cut, answer_with, serving, wired
from tests.egress.world import HOST, tls
from unitools.capabilities import Capabilities
from unitools.packages import zip_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.base import RunOutcome, Sandbox
    from tests.egress.services import Service
    from tests.egress.world import Authority

MIB = 1024 * 1024
PHOTO = SentFile(
    "art_01m8b1taarep0tj1gtp4fgsrfc", 'a"\r\nX-Other: 1\\.png', "image/png", b"\x89PNG\r\n\x1a\n" + bytes(300_000)
)
SHEET = SentFile("fil_01m8b1taarep0tj1gtp4fgsrfc", "june.csv", "text/csv", b"a,b\r\n1,2\r\n")
FORM: dict[str, Any] = {
    "method": "POST",
    "path": "/photos/{item}",
    "arguments": [
        {"argument": "item", "in": "path", "name": "item"},
        {"argument": "photo", "in": "body", "name": "photo", "file": True, "media_types": ["image/png"]},
        {"argument": "sheets", "in": "body", "name": "sheets", "file": True},
        {"argument": "about", "in": "body", "name": "about"},
    ],
    "body": {"media_type": "multipart/form-data"},
    "credentials": [{"secret": "TOKEN", "in": "header", "name": "Authorization", "scheme": "bearer"}],
}
ARGUMENTS = {"item": "7", "photo": PHOTO.id, "sheets": [SHEET.id], "about": {"title": "Hå"}}
PDF = b"%PDF-1.7\n" + bytes(range(256)) * 4000


@pytest.fixture
def ask(sandbox: Sandbox, request: pytest.FixtureRequest) -> Callable[..., RunOutcome]:
    """``ask(port, sent, arguments, operation)``: a call that sends files, and may leave one."""

    def ask(
        port: int,
        sent: tuple[SentFile, ...] = (),
        arguments: dict[str, Any] | None = None,
        operation: dict[str, Any] = FORM,
        level: str = "fresh",
        **limits: int,
    ) -> RunOutcome:
        operation = operation | {"server": f"https://{HOST}:{port}/v1"}
        call = SandboxCall(
            name=f"{request.node.name[:60]}-{port}",
            package=zip_files([]),
            module="",
            entry="",
            arguments=json.dumps(arguments or {}).encode(),
            context={"call_id": "inv_1", "started_at": "2026-01-01T00:00:00+00:00", "seed": "0"},
            secrets={"TOKEN": TOKEN},
            hidden={"TOKEN": (TOKEN,)},
            operation=operation,
            sent_files=sent,
            key=BoxKey("tenant", f"{request.node.name}/{port}"),
        )
        capabilities = Capabilities.from_json({"net": [tls(HOST, port) | {"methods": [operation["method"]]}]})
        most = {"wall_ms": 20_000, "artifacts": 1, "artifact_bytes": 2 * MIB} | limits
        return sandbox.run(Profile(Limits(**most), capabilities, isolation=level), call)

    return ask


def read_form(heard: bytes) -> tuple[Any, Any]:
    head, _, body = heard.partition(b"\r\n\r\n")
    lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    assert int(lines["Content-Length"]) == len(body)
    meta = {"CONTENT_TYPE": lines["Content-Type"], "CONTENT_LENGTH": lines["Content-Length"]}
    return MultiPartParser(meta, io.BytesIO(body), [MemoryFileUploadHandler()], "utf-8").parse()


@pytest.mark.req("BRING-1", "SVC-6")
@pytest.mark.parametrize("level", ["shared", "fresh", "single"])
def test_a_form_with_files_and_json_reaches_the_service_whole(
    level: str, ask: Callable[..., RunOutcome], service: Service
) -> None:
    """Also with a name that would be a header of its own, and twice in one box."""
    for number in (1, 2):
        outcome = ask(service.port, (PHOTO, SHEET), ARGUMENTS, level=level)

        assert (outcome.status, outcome.value) == (RunStatus.OK, {"status": 200, "body": {"ok": True}}), outcome
        assert outcome.clean
        heard = service.requests(number)[-1]
        assert heard.startswith(b"POST /v1/photos/7 HTTP/1.1\r\n")
        assert b"\r\nX-Other" not in heard
        fields, files = read_form(heard)
        assert fields.dict() == {"about": '{"title":"Hå"}'}
        assert {name: [(each.content_type, each.read()) for each in found] for name, found in files.lists()} == {
            "photo": [("image/png", PHOTO.content)],
            "sheets": [("text/csv", SHEET.content)],
        }
        (connection,) = outcome.connections
        assert connection.bytes_out == len(heard)


@pytest.mark.req("BRING-1")
def test_a_file_is_the_whole_of_a_body(ask: Callable[..., RunOutcome], service: Service) -> None:
    operation = FORM | {
        "method": "PUT",
        "arguments": FORM["arguments"][:1],
        "body": {"media_type": "application/octet-stream", "argument": "body", "file": True},
    }

    outcome = ask(service.port, (PHOTO,), {"item": "7", "body": PHOTO.id}, operation)

    assert outcome.status is RunStatus.OK, outcome
    head, _, body = service.requests()[0].partition(b"\r\n\r\n")
    assert body == PHOTO.content
    assert b"\r\nContent-Type: application/octet-stream\r\n" in head + b"\r\n"


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (ARGUMENTS | {"photo": SHEET.id}, "photo: The file is text/csv; the service takes image/png."),
        (ARGUMENTS | {"sheets": ["art_00000000000000000000000000"]}, "sheets: It names no file of this call"),
    ],
)
def test_a_file_of_another_kind_is_refused_before_anybody_is_asked(
    arguments: dict[str, Any], said: str, ask: Callable[..., RunOutcome], service: Service
) -> None:
    outcome = ask(service.port, (PHOTO, SHEET), arguments)

    assert (outcome.status, outcome.error_code) == (RunStatus.DOMAIN_ERROR, "INVALID_ARGUMENT"), outcome
    assert outcome.error_message.startswith(said)
    assert service.connections == 0


@pytest.mark.attack
@pytest.mark.req("BRING-1", "TOOLS-16")
def test_more_than_the_gate_takes_never_leaves(ask: Callable[..., RunOutcome], service: Service) -> None:
    large = SentFile(PHOTO.id, "a.png", "image/png", bytes(9 * MIB))

    outcome = ask(service.port, (large, SHEET), ARGUMENTS)
    after = ask(service.port, (PHOTO, SHEET), ARGUMENTS)

    assert outcome.status is RunStatus.DOMAIN_ERROR, outcome
    (connection,) = outcome.connections
    assert (connection.why, connection.service and connection.service.left) == ("too_many_bytes", False)
    assert after.status is RunStatus.OK, after


READ: dict[str, Any] = {
    "method": "GET",
    "path": "/invoice",
    "arguments": [],
    "credentials": FORM["credentials"],
    "accept": ["application/pdf", "text/csv"],
}


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("content", "said", "name", "claim"),
    [
        (PDF, "application/pdf", "answer.pdf", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "image/png", "answer.png", "image/png"),
        (bytes(range(256)), "application/octet-stream", "answer.bin", "application/octet-stream"),
        (b"a,b\r\n" * 20_000, "text/csv; charset=utf-8", "answer.csv", "text/csv"),
        (b"\xe4,b\r\n", "text/csv; charset=utf-8", "answer.csv", "text/csv"),
    ],
)
def test_an_answer_that_is_a_file_is_left_as_an_artifact(
    content: bytes, said: str, name: str, claim: str, ask: Callable[..., RunOutcome], service: Service
) -> None:
    service.answers = [answer_with(content, content_type=said)]

    outcome = ask(service.port, operation=READ)

    assert (outcome.status, outcome.value) == (RunStatus.OK, {"status": 200, "body": {"artifact": name}}), outcome
    assert [(each.name, each.claim, each.content) for each in outcome.artifacts] == [(name, claim, content)]
    assert service.requests()[0].count(b"Accept: application/pdf, text/csv\r\n") == 1


@pytest.mark.req("BRING-1")
def test_short_text_and_json_stay_in_the_result(ask: Callable[..., RunOutcome], service: Service) -> None:
    service.answers = [
        answer_with(b"a,b\r\n", content_type="text/csv"),
        answer_with(b'{"state":"not ready"}', content_type="application/json"),
    ]

    first, second = ask(service.port, operation=READ), ask(service.port, operation=READ)

    assert (first.value, second.value) == (
        {"status": 200, "body": "a,b\r\n"},
        {"status": 200, "body": {"state": "not ready"}},
    )
    assert first.artifacts == second.artifacts == ()


@pytest.mark.attack
@pytest.mark.req("BRING-1", "SVC-6")
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answer_with(bytes(3 * MIB), content_type="application/pdf"), id="larger than may be left"),
        pytest.param(answer_with(bytes(9 * MIB), content_type="application/pdf"), id="larger than the gate takes"),
        pytest.param(
            answer_with(gzip.compress(bytes(64 << 20)), content_type="application/pdf", content_encoding="gzip"),
            id="gzip bomb",
        ),
        pytest.param(answer_with(b"<html>", content_type="text/html"), id="login page"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: 9\r\n\r\nhal", id="cut off"),
        pytest.param(answer_with(b"", status="302 Found", location="https://169.254.169.254/"), id="redirect"),
        pytest.param(
            answer_with(PDF, status="404 Not Found", content_type="application/pdf"), id="a refusal in a file"
        ),
    ],
)
def test_a_hostile_file_is_an_error_and_the_next_call_is_right(
    answer: bytes, ask: Callable[..., RunOutcome], service: Service
) -> None:
    service.answers = [answer, answer_with(PDF, content_type="application/pdf")]

    outcome = ask(service.port, operation=READ)
    after = ask(service.port, operation=READ)

    assert outcome.status is RunStatus.DOMAIN_ERROR, outcome
    assert outcome.artifacts == ()
    assert (after.status, [each.content for each in after.artifacts]) == (RunStatus.OK, [PDF]), after


@pytest.mark.req("BRING-1")
def test_where_no_artifact_may_be_left_a_file_is_no_answer(ask: Callable[..., RunOutcome], service: Service) -> None:
    service.answers = [answer_with(PDF, content_type="application/pdf")]

    outcome = ask(service.port, operation=READ, artifacts=0, artifact_bytes=0)

    assert (outcome.status, outcome.error_code) == (RunStatus.DOMAIN_ERROR, "UPSTREAM_ERROR"), outcome
    assert outcome.error_message == "The answer is 'application/pdf': neither JSON nor text."


@pytest.mark.req("BRING-1", "TOOLS-16")
@pytest.mark.parametrize(
    ("side", "after", "left"), [("question", 0, False), ("question", 20_000, True), ("answer", 20_000, True)]
)
def test_a_connection_that_is_cut_says_whether_a_byte_of_the_file_left(
    side: str, after: int, left: bool, ask: Callable[..., RunOutcome], authority: Authority
) -> None:
    """Before TLS stands nothing has left, and the request is made again; after that it is not."""
    with serving(authority.server_context(HOST)) as service, wired(service.port) as wire:
        service.answers = [answer_with(b'"' + b"x" * 50_000 + b'"', content_type="application/json")]
        wire.cuts = [Cut(side, after, is_abrupt=True)]
        outcome = ask(wire.port, (PHOTO, SHEET), ARGUMENTS)

    records = [each.service for each in outcome.connections if each.service is not None]
    if not left:
        assert outcome.status is RunStatus.OK, outcome
        assert [each.left for each in records] == [False, True]
        assert len(service.heard) == 1
        return
    assert outcome.status is RunStatus.DOMAIN_ERROR, outcome
    assert [(each.left, each.complete) for each in records] == [(True, False)]
    assert len(service.heard) <= 1

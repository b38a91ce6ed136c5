"""Operations of services in a hub: is one registered, reviewed, granted and called like any other tool, and does its End say what the
gate saw?
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse
from django.utils import timezone

from evidence.kinds import Kind
from evidence.models import Fact
from invocations.models import Attempt, Invocation, State
from invocations.run import execution
from invocations.sandbox.base import ConnectionRecord, Profile, RunOutcome, RunStatus, ServiceRecord
from invocations.sandbox.boxes.payloads import pack_call, pack_load
from registry.installations import services as installations
from registry.installations.services import Setup
from registry.models import Decision, ToolVersion
from registry.secrets import services as secrets
from registry.versions import services as registry
from tests.egress.conftest import HOST
from tests.egress.recorded_boxes import RecordedBoxes
from tests.egress.services import Cut, Service, answer_with, serving, wired
from tests.egress.world import Authority
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of, run_calls_here, run_calls_in
from tests.support.evidence_logs import check_log, seal_everything, signing_with
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.docker import DockerSandbox
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
TOOL = "service.shop.get_item"
TOKEN = "t0ken-of-the-tenant-4711"
DIGEST = "sha256:" + "0" * 64
ITEM = {"item": "a b"}


@pytest.fixture(autouse=True)
def boxes(sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch, settings: Any) -> RecordedBoxes:
    """Calls run in boxes, in the thread of who waits for them."""
    found = RecordedBoxes(sandbox)
    run_calls_in(found, monkeypatch)
    run_calls_here(monkeypatch, settings)
    return found


def document_of(port: int, method: str = "GET", **operation: Any) -> dict[str, Any]:
    return {
        "id": TOOL,
        "version": "1.0.0",
        "display_name": "Get an item",
        "description": "Gives an item of the shop by its id.",
        "input_schema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["item"],
            "properties": {"item": {"type": "string"}},
        },
        "output_schema": {
            "type": "object",
            "required": ["status", "body"],
            "properties": {
                "status": {"type": "integer"},
                "body": {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}},
            },
        },
        # What changes something by the network asks for no consent by itself, so that the tests have none to give.
        "side_effect": "Read" if method == "GET" else "Network",
        "secrets": [{"name": "TOKEN", "description": "Of the shop.", "hosts": [HOST]}],
        "capabilities": {"net": [{"host": HOST, "port": port, "methods": [method]}]},
        "implementation": {
            "kind": "openapi",
            "operation": {
                "server": f"https://{HOST}:{port}/v1",
                "method": method,
                "path": "/items/{item}",
                "arguments": [{"argument": "item", "in": "path", "name": "item"}],
                "credentials": [{"secret": "TOKEN", "in": "header", "name": "Authorization", "scheme": "bearer"}],
            }
            | operation,
        },
        "origin": {
            "document": {"title": "Shop", "version": "3", "openapi": "3.1.0", "digest": DIGEST},
            "operation": "getItem",
            "operation_digest": DIGEST,
        },
    }


@pytest.fixture
def bring(caller: Caller, developer: Person, operator: Person, grant: Callable[..., Any]) -> Callable[..., ToolVersion]:
    """``bring(document)``: uploaded as a manifest alone, reviewed, enabled, set up and granted."""

    def make(document: dict[str, Any], token: str = TOKEN, **granted: Any) -> ToolVersion:
        put_in_force(permit())
        answer = caller.post("/tools", document)
        assert answer.status_code in (200, 201), answer.content.decode()
        version = ToolVersion.objects.get(tool__name=TOOL, version=document["version"])
        registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator.by)
        registry.enable_tool(name=TOOL, version_id=version.pk, reason="x", by=operator.by)
        secrets.set_secret(name="token", value=token, by=operator.by)
        values = Setup(secrets={"TOKEN": "token"})
        installations.configure_installation(name=TOOL, values=values, reason="x", by=operator.by)
        grant(tools="service.*", **granted)
        return version

    return make


def end_of(row: Any) -> dict[str, Any]:
    leaf = Fact.objects.get(invocation_id=row.pk, kind=Kind.INVOCATION_ENDED).leaf
    data: dict[str, Any] = json.loads(bytes(leaf))["data"]
    return data


@pytest.mark.req("BRING-1", "TOOLS-16")
def test_an_operation_is_uploaded_reviewed_granted_called_and_witnessed(
    bring: Callable[..., ToolVersion], caller: Caller, operator: Person, service: Service
) -> None:
    bring(document_of(service.port))

    answer = caller.invoke(TOOL, ITEM)

    assert answer.status_code == 200, answer.json()
    assert answer.json()["data"] == {"status": 200, "body": {"ok": True}}
    (heard,) = service.requests()
    assert heard.startswith(b"GET /v1/items/a%20b HTTP/1.1\r\n")
    assert f"Authorization: Bearer {TOKEN}".encode() in heard
    row = row_of(answer)
    assert kinds_of(row) == PAIR
    end = end_of(row)
    assert end["service"] == {
        "method": "GET",
        "host": HOST,
        "path": "/v1/items/{item}",
        "left": True,
        "complete": True,
        "attempts": 1,
        "bytes_out": len(heard),
        "bytes_in": 11,
        "status": 200,
        "credentials": ["TOKEN"],
    }
    assert TOKEN not in json.dumps(end)
    page = operator.client().get(reverse("invocation", args=[row.pk])).content.decode()
    assert f"<b>GET</b> {HOST}/v1/items/{{item}}" in page
    assert "it had left the hub" in page
    with signing_with():
        seal_everything()
        assert check_log(row.tenant_id) > 0


@pytest.mark.req("BRING-1", "SVC-6")
def test_the_secret_of_an_operation_is_given_to_the_gate_only(
    bring: Callable[..., ToolVersion], caller: Caller, service: Service, boxes: RecordedBoxes
) -> None:
    """What the box gets is looked through; what it holds in memory, files and environment can be no more than that."""
    bring(document_of(service.port))

    caller.invoke(TOOL, ITEM)

    (call,) = boxes.calls
    assert call.secrets == {"TOKEN": TOKEN}
    sent = pack_call(call, stream=True) + pack_load(Profile(), call, level="fresh", load_s=1)
    assert TOKEN.encode() not in sent
    assert b"Bearer" not in sent


@pytest.mark.req("BRING-1", "TOOLS-16")
def test_the_reviewer_sees_the_request_and_its_credential(caller: Caller, operator: Person, service: Service) -> None:
    keyed = document_of(service.port, "DELETE", idempotency_header="X-Once") | {"idempotency": "keyed"}
    answer = caller.post("/tools", keyed)
    assert answer.status_code in (200, 201), answer.content.decode()
    version = ToolVersion.objects.get(tool__name=TOOL)

    page = operator.client().get(reverse("review", args=[version.pk])).content.decode()

    assert "<b>DELETE</b>" in page
    assert "item → path item" in page
    assert "the key of a repeated call → header X-Once" in page
    assert f"https://{HOST}:{service.port}/v1/items/{{item}}" in page
    assert "in the header Authorization (bearer), added by the egress gate; no sandbox sees it" in page
    assert "Shop 3" in page
    assert "as its author says" in page


@pytest.mark.req("BRING-1", "TOOLS-3", "TOOLS-16")
def test_a_grant_of_another_method_closes_the_operation(
    bring: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    net = [{"host": HOST, "port": service.port, "methods": ["GET"]}]
    bring(document_of(service.port, "DELETE"), capabilities={"net": net, "secrets": ["TOKEN"]})

    assert_problem(caller.invoke(TOOL, ITEM), 403, "SANDBOX.CAPABILITY_BLOCKED")
    assert service.connections == 0


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("status", "method", "http", "reason"),
    [
        ("404 Not Found", "GET", 404, "DOMAIN.NOT_FOUND"),
        ("422 Unprocessable", "GET", 422, "DOMAIN.INVALID_ARGUMENT"),
        ("418 Teapot", "GET", 502, "DOMAIN.UPSTREAM_ERROR"),
        ("401 Unauthorized", "GET", 502, "SERVICE.ACCESS_DENIED"),
        ("403 Forbidden", "GET", 502, "SERVICE.ACCESS_DENIED"),
        ("302 Found", "GET", 502, "SERVICE.REDIRECTED"),
        ("429 Too Many Requests", "GET", 503, "SERVICE.BUSY"),
        ("503 Service Unavailable", "DELETE", 503, "SERVICE.BUSY"),
        ("500 Internal Server Error", "GET", 502, "DOMAIN.UPSTREAM_ERROR"),
        ("500 Internal Server Error", "DELETE", 502, "SERVICE.FAILED"),
    ],
)
def test_what_a_service_answers_is_one_problem_of_the_catalogue(
    status: str,
    method: str,
    http: int,
    reason: str,
    bring: Callable[..., ToolVersion],
    caller: Caller,
    service: Service,
) -> None:
    said = json.dumps({"message": "no"}).encode()
    service.answers = [answer_with(said, status=status, content_type="application/json", retry_after="7")]
    bring(document_of(service.port, method))

    body = assert_problem(answer := caller.invoke(TOOL, ITEM), http, reason)

    number = int(status[:3])
    assert body["error"]["details"]["status"] == number
    assert body["error"]["details"].get("body") == (None if number == 302 else {"message": "no"})
    assert (answer.headers.get("Retry-After") == "7") == (reason == "SERVICE.BUSY")
    assert end_of(row_of(answer))["service"]["status"] == number


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("method", "status", "idempotency", "reason"),
    [
        ("DELETE", "503 Service Unavailable", "none", "SERVICE.FAILED"),
        ("DELETE", "503 Service Unavailable", "keyed", "SERVICE.BUSY"),
        ("DELETE", "429 Too Many Requests", "none", "SERVICE.BUSY"),
        ("GET", "503 Service Unavailable", "none", "SERVICE.BUSY"),
    ],
)
def test_nobody_is_told_to_call_again_what_a_proxy_may_have_passed_on(
    method: str,
    status: str,
    idempotency: str,
    reason: str,
    bring: Callable[..., ToolVersion],
    caller: Caller,
    service: Service,
) -> None:
    """A proxy says 503 also of a service that it has asked and whose answer it has lost."""
    service.answers = [answer_with(b"", status=status)]
    key = {"idempotency_header": "Idempotency-Key"} if idempotency == "keyed" else {}
    bring(document_of(service.port, method, **key) | {"idempotency": idempotency})

    problem = caller.invoke(TOOL, ITEM).json()["error"]

    assert (problem["reason"], problem["retryable"]) == (reason, "yes" if reason == "SERVICE.BUSY" else "after_action")


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("options", "method", "state", "reason", "left"),
    [
        pytest.param({"refuses": 9}, "DELETE", State.FAILED, "SERVICE.UNREACHABLE", False, id="never left"),
        pytest.param({"hangs_up": "head"}, "DELETE", State.OUTCOME_UNKNOWN, "SERVICE.ANSWER_LOST", True, id="left"),
        pytest.param({"hangs_up": "head"}, "GET", State.FAILED, "DOMAIN.UPSTREAM_ERROR", True, id="only reads"),
        pytest.param(
            {"answers": [b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\nhalf"], "hangs_up": "answer"},
            *("DELETE", State.OUTCOME_UNKNOWN, "SERVICE.ANSWER_LOST", True),
            id="half an answer",
        ),
        pytest.param(
            {"answers": [b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"]},
            *("DELETE", State.FAILED, "SERVICE.ANSWER_UNUSABLE", True),
            id="too large",
        ),
        pytest.param(
            {"answers": [answer_with(b"<html>", content_type="text/html")]},
            *("DELETE", State.FAILED, "SERVICE.ANSWER_UNUSABLE", True),
            id="a page",
        ),
    ],
)
def test_a_lost_answer_is_unknown_only_where_something_left_and_it_matters(
    options: dict[str, Any],
    method: str,
    state: State,
    reason: str,
    left: bool,
    bring: Callable[..., ToolVersion],
    caller: Caller,
    authority: Authority,
) -> None:
    with serving(authority.server_context(HOST), **options) as service:
        bring(document_of(service.port, method))
        row = row_of(caller.invoke(TOOL, ITEM))

    assert (row.state, row.reason) == (state, reason)
    assert end_of(row)["service"]["left"] is left
    assert len(service.heard) <= 1


@pytest.mark.req("BRING-1")
def test_an_answer_that_makes_no_result_says_that_the_service_did_it(
    bring: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    large = json.dumps({"ok": True, "more": ["x" * 100] * 9000}).encode()
    service.answers = [answer_with(large, status="201 Created", content_type="application/json")]
    bring(document_of(service.port, "DELETE"))

    problem = assert_problem(caller.invoke(TOOL, ITEM), 502, "SERVICE.ANSWER_UNUSABLE")

    assert problem["error"]["details"] == {"status": 201, "sandbox": "result_too_large"}


@pytest.mark.req("BRING-1")
def test_a_service_that_nobody_vouches_for_is_sent_nothing(
    bring: Callable[..., ToolVersion], caller: Caller, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    with serving(stranger.server_context(HOST)) as forged:
        bring(document_of(forged.port))
        assert_problem(caller.invoke(TOOL, ITEM), 502, "SERVICE.CERTIFICATE_REFUSED")

    assert forged.heard == []


LOST_RUN = RunOutcome(RunStatus.LOST, box="b", clean=False)


def attempts_of(row: Any) -> list[str]:
    return list(Attempt.objects.filter(invocation=row).order_by("number").values_list("status", flat=True))


@pytest.mark.req("BRING-1")
def test_a_run_that_was_lost_is_made_again_where_nothing_had_left(
    bring: Callable[..., ToolVersion], caller: Caller, service: Service, boxes: RecordedBoxes
) -> None:
    bring(document_of(service.port, "DELETE"))
    boxes.instead = [LOST_RUN]

    row = row_of(caller.invoke(TOOL, ITEM))
    execution.run_queued_calls()

    row.refresh_from_db()
    assert (row.state, attempts_of(row)) == (State.SUCCEEDED, ["unsent", "ok"])
    assert "invocation.retried" in kinds_of(row)
    assert len(service.heard) == 1


@pytest.mark.req("BRING-1")
def test_a_call_of_which_nothing_ever_left_is_not_unknown(
    bring: Callable[..., ToolVersion], caller: Caller, service: Service, boxes: RecordedBoxes
) -> None:
    bring(document_of(service.port, "DELETE"))
    boxes.instead = [LOST_RUN] * 3

    row = row_of(caller.invoke(TOOL, ITEM))
    execution.run_queued_calls()

    row.refresh_from_db()
    assert (row.state, row.reason) == (State.FAILED, "SERVICE.UNREACHABLE")
    assert attempts_of(row) == ["unsent", "unsent", "lost"]
    assert service.connections == 0


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("left", [False, True])
def test_whoever_cancels_is_told_whether_anything_was_sent(
    left: bool, bring: Callable[..., ToolVersion], caller: Caller, service: Service, boxes: RecordedBoxes
) -> None:
    bring(document_of(service.port, "DELETE"))
    sent = ConnectionRecord(HOST, service.port, True, rule=HOST, service=ServiceRecord("DELETE", "/x", left=left))

    def cancel(outcome: RunOutcome) -> RunOutcome:
        Invocation.objects.update(cancel_asked_at=timezone.now())
        return RunOutcome(RunStatus.CANCELLED, box="b", clean=False, connections=(sent,))

    boxes.change = cancel
    answer = caller.invoke(TOOL, ITEM)

    error = answer.json()["error"]
    assert row_of(answer).state == State.CANCELLED
    assert (error["message"] == "This call was cancelled before anything was sent to the service.") is not left
    assert ("Nothing took place." in error["remedy"]) is not left


@pytest.mark.req("BRING-1")
def test_of_a_keyed_call_that_left_once_nobody_says_that_nothing_left(
    bring: Callable[..., ToolVersion], caller: Caller, service: Service, boxes: RecordedBoxes
) -> None:
    keyed = document_of(service.port, "DELETE", idempotency_header="Idempotency-Key") | {"idempotency": "keyed"}
    bring(keyed)
    left = ConnectionRecord(HOST, service.port, True, rule=HOST, service=ServiceRecord("DELETE", "/x", left=True))
    boxes.instead = [replace(LOST_RUN, connections=(left,)), LOST_RUN, LOST_RUN]

    row = row_of(caller.invoke(TOOL, ITEM, headers={"Idempotency-Key": "once"}))
    execution.run_queued_calls()

    row.refresh_from_db()
    assert attempts_of(row)[:2] == ["lost", "unsent"]
    assert row.state == State.OUTCOME_UNKNOWN


@pytest.mark.req("BRING-1")
def test_a_run_that_was_lost_after_its_request_left_is_not_made_again(
    bring: Callable[..., ToolVersion], caller: Caller, service: Service, boxes: RecordedBoxes
) -> None:
    bring(document_of(service.port, "DELETE"))

    def lose(outcome: RunOutcome) -> RunOutcome:
        (connection,) = outcome.connections
        assert connection.service is not None
        cut = replace(connection, service=replace(connection.service, complete=False))
        return RunOutcome(RunStatus.LOST, box="b", clean=False, connections=(cut,))

    boxes.change = lose
    row = row_of(caller.invoke(TOOL, ITEM))

    assert (row.state, row.reason, len(boxes.calls)) == (State.OUTCOME_UNKNOWN, "SERVICE.ANSWER_LOST", 1)
    assert len(service.heard) == 1


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("strict", [False, True])
def test_an_answer_unlike_its_document_is_a_warning_unless_strict(
    strict: bool, bring: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    service.answers = [answer_with(b'{"ok": "yes"}', content_type="application/json")]
    bring(document_of(service.port, strict=strict))

    answer = caller.invoke(TOOL, ITEM)

    if strict:
        assert_problem(answer, 502, "SCHEMA.OUTPUT_INVALID")
        return
    assert answer.json()["data"] == {"status": 200, "body": {"ok": "yes"}}
    assert answer.json()["warnings"] == [
        "The service's answer does not match the schema of its document, at /body/ok. It was passed on as it is."
    ]
    assert end_of(row_of(answer))["service"]["unlike_document"] is True


@pytest.mark.req("BRING-1", "SVC-6")
def test_an_answer_that_gives_the_secret_back_is_withheld(
    bring: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    service.answers = [answer_with(json.dumps({"ok": True, "you": TOKEN}).encode(), content_type="application/json")]
    bring(document_of(service.port))

    answer = caller.invoke(TOOL, ITEM)

    assert_problem(answer, 502, "SANDBOX.SECRET_LEAK")
    assert TOKEN not in answer.content.decode()


@pytest.mark.req("BRING-1", "SVC-6")
@pytest.mark.parametrize(
    ("secret", "said"), [("me:pa55-word-4711", "pa55-word-4711"), ("sk_live_4711:", "sk_live_4711")]
)
def test_an_answer_that_gives_the_part_of_a_secret_back_that_counts_is_withheld(
    secret: str, said: str, bring: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    link = f'<https://{HOST}/next?key={said}>; rel="next"'
    service.answers = [
        answer_with(json.dumps({"ok": True, "you": said}).encode(), content_type="application/json"),
        answer_with(b'{"ok": true}', content_type="application/json", link=link),
    ]
    basic = {"secret": "TOKEN", "in": "header", "name": "Authorization", "scheme": "basic"}
    bring(document_of(service.port, credentials=[basic]), token=secret)

    answer, linked = caller.invoke(TOOL, ITEM), caller.invoke(TOOL, ITEM)

    assert_problem(answer, 502, "SANDBOX.SECRET_LEAK")
    assert said not in answer.content.decode()
    assert linked.json()["data"]["links"] == {"next": f"https://{HOST}/next?key=[secret TOKEN]"}


@pytest.mark.req("BRING-1")
def test_a_secret_that_no_header_can_hold_is_told_before_anybody_is_asked(
    bring: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    bring(document_of(service.port), token="two\nlines of it")

    body = assert_problem(caller.invoke(TOOL, ITEM), 409, "SERVICE.CREDENTIAL_UNUSABLE")

    assert "lines of it" not in json.dumps(body)
    assert service.connections == 0


@pytest.mark.req("BRING-1")
def test_a_dry_run_asks_no_service_that_would_change_something(
    bring: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    bring(document_of(service.port, "DELETE"))

    assert_problem(caller.invoke(TOOL, ITEM, dry_run=True), 422, "SERVICE.NO_DRY_RUN")
    assert service.connections == 0


CUTS = 200


@pytest.mark.long  # two hundred calls, each of which may be asked for twice
@pytest.mark.req("BRING-1", "SVC-6", "TOOLS-16")
def test_of_two_hundred_killed_connections_none_is_repeated_that_left_or_unknown_that_did_not(
    bring: Callable[..., ToolVersion], caller: Caller, authority: Authority
) -> None:
    """The connection of a DELETE ends anywhere: in the handshake of TLS, in the request, in the answer. Where nothing of the request
    can have left, the service is asked once all the same; where something has, it is asked once at most, and the outcome is unknown
    unless the answer is whole."""
    body = json.dumps({"ok": True, "more": "x" * 2000}).encode()
    chance = random.Random(4711)
    counted: Counter[str] = Counter()
    with (
        serving(
            authority.server_context(HOST), answers=[answer_with(body, content_type="application/json")]
        ) as service,
        wired(service.port) as wire,
    ):
        bring(document_of(wire.port, "DELETE"))
        assert caller.invoke(TOOL, ITEM).status_code == 200
        whole = wire.passed[0]
        hello = whole[0][1]
        second = next(place for place, (side, _) in enumerate(whole) if side == "question" and place)
        shaken = wire.count(whole[:second], "answer")  # by now the gate has done its part of the handshake
        for number in range(CUTS):
            side = chance.choice(("question", "answer"))
            cut = Cut(side, chance.randrange(wire.count(whole, side)), chance.random() < 0.5)
            wire.passed.clear()
            wire.cuts = [cut] * chance.choice((1, 1, 2))

            row = row_of(caller.invoke(TOOL, {"item": f"n{number}"}))

            said = end_of(row)["service"]
            what = f"{number}: {cut}, {row.state} {row.reason}, {said}, {len(wire.passed)} connections"
            is_unsent = cut.after < (hello if side == "question" else shaken)
            assert said["left"], what  # in the end: the last connection is not cut
            if is_unsent:
                assert (row.state, len(wire.passed)) == (State.SUCCEEDED, len(wire.cuts) + 1), what
            else:
                assert len(wire.passed) == 1, what
                assert row.state == (State.SUCCEEDED if said["complete"] else State.OUTCOME_UNKNOWN), what
                assert said["complete"] or row.reason == "SERVICE.ANSWER_LOST", what
            counted["repeated" if is_unsent else str(row.state)] += 1

    asked = Counter(each.split(b" ")[1] for each in service.heard if each.count(b" ") > 1)
    assert max(asked.values()) == 1, asked
    assert counted["repeated"] > CUTS // 4
    assert counted[State.OUTCOME_UNKNOWN] > CUTS // 4

"""Operations of services in a hub: is one registered, reviewed, granted and called like any other tool, and does its End say what the
gate saw?
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from invocations.sandbox.base import Profile
from invocations.sandbox.boxes.payloads import pack_call, pack_load
from registry.models import ToolVersion
from tests.egress.services import Service, answer_with, serving
from tests.egress.shop import ITEM, TOKEN, TOOL, document_of, end_of
from tests.egress.world import HOST, Authority
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.evidence_logs import check_log, seal_everything, signing_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.egress.recorded_boxes import RecordedBoxes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shop_boxes")]


@pytest.mark.req("BRING-1", "TOOLS-16")
def test_an_operation_is_uploaded_reviewed_granted_called_and_witnessed(
    bring_operation: Callable[..., ToolVersion], caller: Caller, operator: Person, service: Service
) -> None:
    bring_operation(document_of(service.port))

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
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service, shop_boxes: RecordedBoxes
) -> None:
    """What the box gets is looked through; what it holds in memory, files and environment can be no more than that."""
    bring_operation(document_of(service.port))

    caller.invoke(TOOL, ITEM)

    (call,) = shop_boxes.calls
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
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    net = [{"host": HOST, "port": service.port, "methods": ["GET"]}]
    bring_operation(document_of(service.port, "DELETE"), capabilities={"net": net, "secrets": ["TOKEN"]})

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
    bring_operation: Callable[..., ToolVersion],
    caller: Caller,
    service: Service,
) -> None:
    said = json.dumps({"message": "no"}).encode()
    service.answers = [answer_with(said, status=status, content_type="application/json", retry_after="7")]
    bring_operation(document_of(service.port, method))

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
    bring_operation: Callable[..., ToolVersion],
    caller: Caller,
    service: Service,
) -> None:
    """A proxy says 503 also of a service that it has asked and whose answer it has lost."""
    service.answers = [answer_with(b"", status=status)]
    key = {"idempotency_header": "Idempotency-Key"} if idempotency == "keyed" else {}
    bring_operation(document_of(service.port, method, **key) | {"idempotency": idempotency})

    problem = caller.invoke(TOOL, ITEM).json()["error"]

    assert (problem["reason"], problem["retryable"]) == (reason, "yes" if reason == "SERVICE.BUSY" else "after_action")


@pytest.mark.req("BRING-1")
def test_an_answer_that_makes_no_result_says_that_the_service_did_it(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    large = json.dumps({"ok": True, "more": ["x" * 100] * 9000}).encode()
    service.answers = [answer_with(large, status="201 Created", content_type="application/json")]
    bring_operation(document_of(service.port, "DELETE"))

    problem = assert_problem(caller.invoke(TOOL, ITEM), 502, "SERVICE.ANSWER_UNUSABLE")

    assert problem["error"]["details"] == {"status": 201, "sandbox": "result_too_large"}


@pytest.mark.req("BRING-1")
def test_a_service_that_nobody_vouches_for_is_sent_nothing(
    bring_operation: Callable[..., ToolVersion], caller: Caller, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    with serving(stranger.server_context(HOST)) as forged:
        bring_operation(document_of(forged.port))
        assert_problem(caller.invoke(TOOL, ITEM), 502, "SERVICE.CERTIFICATE_REFUSED")

    assert forged.heard == []


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("strict", [False, True])
def test_an_answer_unlike_its_document_is_a_warning_unless_strict(
    strict: bool, bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    service.answers = [answer_with(b'{"ok": "yes"}', content_type="application/json")]
    bring_operation(document_of(service.port, strict=strict))

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
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    service.answers = [answer_with(json.dumps({"ok": True, "you": TOKEN}).encode(), content_type="application/json")]
    bring_operation(document_of(service.port))

    answer = caller.invoke(TOOL, ITEM)

    assert_problem(answer, 502, "SANDBOX.SECRET_LEAK")
    assert TOKEN not in answer.content.decode()


@pytest.mark.req("BRING-1", "SVC-6")
@pytest.mark.parametrize(
    ("secret", "said"), [("me:pa55-word-4711", "pa55-word-4711"), ("sk_live_4711:", "sk_live_4711")]
)
def test_an_answer_that_gives_the_part_of_a_secret_back_that_counts_is_withheld(
    secret: str, said: str, bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    link = f'<https://{HOST}/next?key={said}>; rel="next"'
    service.answers = [
        answer_with(json.dumps({"ok": True, "you": said}).encode(), content_type="application/json"),
        answer_with(b'{"ok": true}', content_type="application/json", link=link),
    ]
    basic = {"secret": "TOKEN", "in": "header", "name": "Authorization", "scheme": "basic"}
    bring_operation(document_of(service.port, credentials=[basic]), token=secret)

    answer, linked = caller.invoke(TOOL, ITEM), caller.invoke(TOOL, ITEM)

    assert_problem(answer, 502, "SANDBOX.SECRET_LEAK")
    assert said not in answer.content.decode()
    assert linked.json()["data"]["links"] == {"next": f"https://{HOST}/next?key=[secret TOKEN]"}


@pytest.mark.req("BRING-1")
def test_a_secret_that_no_header_can_hold_is_told_before_anybody_is_asked(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    bring_operation(document_of(service.port), token="two\nlines of it")

    body = assert_problem(caller.invoke(TOOL, ITEM), 409, "SERVICE.CREDENTIAL_UNUSABLE")

    assert "lines of it" not in json.dumps(body)
    assert service.connections == 0


@pytest.mark.req("BRING-1")
def test_a_dry_run_asks_no_service_that_would_change_something(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    bring_operation(document_of(service.port, "DELETE"))

    assert_problem(caller.invoke(TOOL, ITEM, dry_run=True), 422, "SERVICE.NO_DRY_RUN")
    assert service.connections == 0

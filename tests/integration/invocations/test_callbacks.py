"""Callbacks: is an agent's server told that a call has ended, once, safely and so that it can check who says so?"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evidence.deliveries.messages import PAUSES
from evidence.deliveries.queue import Sender, interleave_tenants
from evidence.keys.wrapped_keys import SEALED
from evidence.models import Fact
from invocations.callbacks import delivery as callbacks_delivery
from invocations.callbacks import services
from invocations.callbacks.models import CallbackAttempt, CallbackDelivery, CallbackEndpoint, CallbackSecret
from kernel.problems import Conflict, SchemaInvalid
from tests.support.calls import assert_problem, row_of, writer
from tests.support.http_server import Server, local_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.models import Invocation
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
ECHO = "sample.tools.echo"


@pytest.fixture
def server(settings: Any) -> Iterator[Server]:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    with local_server() as found:
        yield found


@pytest.fixture
def ready(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> None:
    enable()
    grant()


@pytest.fixture
def endpoint(ready: None, server: Server, caller: Caller, operator: Person) -> tuple[CallbackEndpoint, str]:
    """An endpoint named orders, with its secret."""
    return services.make_endpoint(agent_id=caller.agent.pk, name="orders", url=f"{server.url}/hook", by=operator.by)


def call(caller: Caller, callback: Any = "orders", **envelope: Any) -> Any:
    return caller.invoke(ECHO, {"text": "x"}, callback=callback, **envelope)


def is_signed(heard: Any, secret: str) -> bool:
    signed = b".".join([heard.headers["webhook-id"].encode(), heard.headers["webhook-timestamp"].encode(), heard.body])
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return expected in heard.headers["webhook-signature"].split(" ")


def due_again() -> None:
    CallbackDelivery.objects.filter(next_attempt_at__isnull=False).update(next_attempt_at=timezone.now())


def kinds_of(call: Invocation) -> list[str]:
    rows = Fact.objects.filter(invocation_id=call.pk, kind__startswith="callback.").order_by("id")
    return list(rows.values_list("kind", flat=True))


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("prefer", ["respond-async", ""])
def test_the_server_is_told_what_ended_and_where_its_answer_is(
    prefer: str, endpoint: tuple[CallbackEndpoint, str], caller: Caller, bell: Bell, server: Server
) -> None:
    answer = caller.invoke(ECHO, {"text": "x"}, callback="orders", headers={"Prefer": prefer} if prefer else {})
    if prefer:
        assert answer.status_code == 202
        assert callbacks_delivery.send_due_deliveries() == 0, "nothing has ended yet"
        bell.deliver()
    made = row_of(answer)

    assert callbacks_delivery.send_due_deliveries() == 1

    [heard] = server.heard
    assert is_signed(heard, endpoint[1])
    body = json.loads(heard.body)
    assert set(body) == {"type", "timestamp", "data"}
    assert body["type"] == "invocation.ended"
    assert body["data"]["call_id"] == made.wire_id
    assert body["data"]["state"] == "succeeded"
    assert body["data"]["location"].endswith(f"/api/v1/invocations/{made.wire_id}")
    assert "scripted" not in heard.body.decode()
    delivery = CallbackDelivery.objects.get()
    assert heard.headers["webhook-id"] == delivery.wire_id
    assert delivery.state == "delivered"
    assert kinds_of(made) == ["callback.delivered"]
    began = json.loads(bytes(Fact.objects.get(invocation_id=made.pk, kind="invocation.began").leaf))
    assert began["data"]["callback"] == endpoint[0].wire_id
    assert callbacks_delivery.send_due_deliveries() == 0


def test_the_answer_goes_along_where_the_endpoint_is_set_to_get_it_and_that_is_a_fact(
    ready: None, server: Server, caller: Caller, operator: Person
) -> None:
    services.make_endpoint(agent_id=caller.agent.pk, name="all", url=server.url, include_answer=True, by=operator.by)

    made = row_of(call(caller, True))
    assert callbacks_delivery.send_due_deliveries() == 1

    answer = json.loads(server.heard[0].body)["data"]["answer"]
    assert answer["data"] == {"text": "scripted"}
    assert answer["call"]["call_id"] == made.wire_id
    assert Fact.objects.get(invocation_id=made.pk, kind="snapshot.read").actor_id == "system:callbacks"


@pytest.mark.req("TOOLS-32")
def test_a_call_names_an_endpoint_of_its_agent_and_never_an_address(
    endpoint: tuple[CallbackEndpoint, str], caller: Caller, foreign_caller: Caller, operator: Person, server: Server
) -> None:
    for wrong in ("https://evil.example.org/", {"url": "https://evil.example.org/"}, False, 7, "a b", "x" * 41, "*"):
        assert_problem(call(caller, wrong), 422, "SCHEMA.VALIDATION_FAILED")
    unknown = assert_problem(call(caller, "nothing"), 409, "CALLBACK.UNKNOWN")
    assert unknown["error"]["details"] == {"endpoints": ["orders"]}
    assert row_of(call(caller, "nothing")).state == "denied"
    services.make_endpoint(agent_id=caller.agent.pk, name="other", url=server.url, by=operator.by)
    assert_problem(call(caller, True), 409, "CALLBACK.UNKNOWN")
    services.disable_endpoint(endpoint_id=endpoint[0].pk, reason="a test", by=operator.by)
    assert_problem(call(caller, "orders"), 409, "CALLBACK.UNKNOWN")
    assert call(caller, True).status_code == 200


@pytest.mark.parametrize(("tool", "state"), [(ECHO, "queued"), ("sample.tools.write", "held")])
def test_the_endpoint_of_a_call_is_looked_up_once(
    tool: str, state: str, endpoint: tuple[CallbackEndpoint, str], enable: Callable[..., Tool], caller: Caller
) -> None:
    writer(enable)

    with CaptureQueriesContext(connection) as queries:
        answer = caller.invoke(
            tool, {}, callback="orders", on_consent="hold", purpose="a test", headers={"Prefer": "respond-async"}
        )

    assert (row_of(answer).state, row_of(answer).callback_id) == (state, endpoint[0].pk)
    assert len([query for query in queries if CallbackEndpoint._meta.db_table in query["sql"]]) == 1


def test_what_never_began_is_told_of_by_its_answer_only(endpoint: tuple[CallbackEndpoint, str], caller: Caller) -> None:
    assert_problem(caller.invoke(ECHO, {"text": 7}, callback="orders"), 422, "SCHEMA.VALIDATION_FAILED")

    assert not CallbackDelivery.objects.exists()


def test_a_cancelled_call_is_told_of_too(
    endpoint: tuple[CallbackEndpoint, str], caller: Caller, bell: Bell, server: Server
) -> None:
    bell.answers = False
    made = row_of(caller.invoke(ECHO, {"text": "x"}, callback="orders", headers={"Prefer": "respond-async"}))

    assert caller.delete(f"/invocations/{made.wire_id}").status_code == 200
    assert callbacks_delivery.send_due_deliveries() == 1

    assert json.loads(server.heard[0].body)["data"]["state"] == "cancelled"


@pytest.mark.req("TOOLS-32")
def test_what_fails_is_tried_eight_times_within_a_day_and_each_try_is_kept(
    endpoint: tuple[CallbackEndpoint, str], caller: Caller, server: Server, operator: Person
) -> None:
    made = row_of(call(caller))
    server.status = 503
    pauses = []

    for _ in PAUSES:
        assert callbacks_delivery.send_due_deliveries() == 0
        row = CallbackDelivery.objects.get()
        assert row.next_attempt_at is not None
        pauses.append(row.next_attempt_at - timezone.now())
        assert kinds_of(made) == []
        due_again()
    assert callbacks_delivery.send_due_deliveries() == 0

    row = CallbackDelivery.objects.get()
    assert row.state == "given_up"
    assert pauses == sorted(pauses)
    assert sum(pauses, timedelta(0)) < timedelta(days=1)
    tries = list(CallbackAttempt.objects.order_by("id"))
    assert [(each.status, each.error) for each in tries] == [(503, "Answered 503.")] * 8
    assert len({heard.headers["webhook-id"] for heard in server.heard}) == 1
    assert len({heard.body for heard in server.heard}) == 1
    assert kinds_of(made) == ["callback.failed"]

    server.status = 200
    services.redeliver_callback(delivery_id=row.pk, by=operator.by)
    assert callbacks_delivery.send_due_deliveries() == 1

    assert kinds_of(made) == ["callback.failed", "callback.redelivered", "callback.delivered"]
    assert server.heard[-1].headers["webhook-id"] == row.wire_id
    assert server.heard[-1].body == server.heard[0].body


def test_an_address_that_is_gone_is_not_tried_again(
    endpoint: tuple[CallbackEndpoint, str], caller: Caller, server: Server
) -> None:
    made = row_of(call(caller))
    server.status = 410

    assert callbacks_delivery.send_due_deliveries() == 0

    assert CallbackDelivery.objects.get().state == "given_up"
    assert kinds_of(made) == ["callback.failed"]


def test_two_secrets_sign_until_the_overlap_is_over(
    endpoint: tuple[CallbackEndpoint, str], caller: Caller, server: Server, operator: Person
) -> None:
    made, first = endpoint
    _, second = services.rotate_secret(endpoint_id=made.pk, overlap=timedelta(hours=1), by=operator.by)
    call(caller)
    callbacks_delivery.send_due_deliveries()
    CallbackSecret.objects.filter(ends_at__isnull=False).update(ends_at=timezone.now())
    call(caller)
    callbacks_delivery.send_due_deliveries()

    assert [is_signed(heard, first) for heard in server.heard] == [True, False]
    assert [is_signed(heard, second) for heard in server.heard] == [True, True]
    _, third = services.rotate_secret(endpoint_id=made.pk, by=operator.by)
    _, fourth = services.rotate_secret(endpoint_id=made.pk, by=operator.by)
    call(caller)
    callbacks_delivery.send_due_deliveries()
    assert len(server.heard[-1].headers["webhook-signature"].split(" ")) == 2
    assert is_signed(server.heard[-1], third)
    assert is_signed(server.heard[-1], fourth)
    kept = b"".join(bytes(row.wrapped_key) for row in CallbackSecret.objects.all())
    assert base64.b64decode(fourth.removeprefix("whsec_")) not in kept
    assert "invocations.CallbackSecret" in {each.model for each in SEALED}


@pytest.mark.parametrize(
    "url", ["http://hooks.example.org/", "https://10.0.0.5/", "https://localhost/", "ftp://x.org/"]
)
def test_an_endpoint_is_at_a_public_address(url: str, caller: Caller, operator: Person, settings: Any) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = []

    with pytest.raises(SchemaInvalid):
        services.make_endpoint(agent_id=caller.agent.pk, name="x", url=url, by=operator.by)


def test_a_name_that_leads_to_a_neighbour_later_is_not_asked(
    ready: None, caller: Caller, operator: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = []
    services.make_endpoint(agent_id=caller.agent.pk, name="x", url="https://hooks.example.org/", by=operator.by)
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in ("8.8.8.8", "169.254.169.254")]

    made = row_of(call(caller, True))
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        due = CallbackDelivery.objects.get()
        assert callbacks_delivery.QUEUE.claim_due(due)
        assert callbacks_delivery.QUEUE.serve_row(due) == 0

    assert "private address" in CallbackAttempt.objects.get().error
    assert kinds_of(made) == ["callback.failed"]


def test_a_redirect_is_not_followed(endpoint: tuple[CallbackEndpoint, str], caller: Caller, server: Server) -> None:
    server.status, server.headers = 307, {"Location": f"{server.url}/elsewhere"}
    call(caller)

    assert callbacks_delivery.send_due_deliveries() == 0
    assert [heard.path for heard in server.heard] == ["/hook"]


def test_two_senders_do_not_send_the_same_message(endpoint: tuple[CallbackEndpoint, str], caller: Caller) -> None:
    call(caller)
    seen, by_another = CallbackDelivery.objects.get(), CallbackDelivery.objects.get()

    assert callbacks_delivery.QUEUE.claim_due(seen)
    assert not callbacks_delivery.QUEUE.claim_due(by_another)


@pytest.mark.parametrize(("said", "seconds"), [("120", 120), ("0", 10), ("999999999", 3600), ("soon", 10)])
def test_a_server_says_how_long_it_is_left_alone(
    said: str, seconds: int, endpoint: tuple[CallbackEndpoint, str], caller: Caller, server: Server
) -> None:
    call(caller)
    server.status, server.headers = 429, {"Retry-After": said}
    before = timezone.now()

    assert callbacks_delivery.send_due_deliveries() == 0

    row = CallbackDelivery.objects.get()
    assert row.next_attempt_at is not None
    assert timedelta(seconds=seconds) <= row.next_attempt_at - before < timedelta(seconds=seconds + 60)


def test_a_server_that_does_not_answer_holds_up_nobody_else(
    endpoint: tuple[CallbackEndpoint, str], caller: Caller, server: Server, operator: Person
) -> None:
    """However much waits for it, a pass leaves room for the others."""
    services.make_endpoint(agent_id=caller.agent.pk, name="late", url=f"{server.url}/late", by=operator.by)
    for _ in range(4):
        call(caller)
    call(caller, "late")
    CallbackDelivery.objects.filter(endpoint__name="orders").update(next_attempt_at=timezone.now() - timedelta(hours=1))

    sender = Sender(callbacks_delivery.QUEUE)
    sender.start_due()
    sender.finish()
    sender.close()

    assert sorted(heard.path for heard in server.heard) == ["/hook", "/hook", "/late"]
    assert callbacks_delivery.send_due_deliveries() == 2, "what is left comes next"


@pytest.mark.unmapped
def test_a_message_that_cannot_be_made_is_given_up_like_one_that_does_not_arrive(
    endpoint: tuple[CallbackEndpoint, str], caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(row: CallbackDelivery) -> bytes:
        raise KeyError(row.pk)

    monkeypatch.setattr(callbacks_delivery, "build_callback_body", breaks)
    made = row_of(call(caller))
    for _ in range(len(PAUSES) + 1):
        assert callbacks_delivery.send_due_deliveries() == 0
        due_again()

    assert kinds_of(made) == ["callback.failed"]
    assert set(CallbackAttempt.objects.values_list("error", flat=True)) == {"KeyError"}


def test_a_tenant_with_many_dead_servers_holds_up_no_other() -> None:
    many, other = uuid4(), uuid4()
    rows = [CallbackDelivery(tenant_id=many) for _ in range(40)] + [CallbackDelivery(tenant_id=other)]

    assert interleave_tenants(rows)[:3] == [rows[0], rows[40], rows[1]]
    assert interleave_tenants(rows, running=rows[:2])[:2] == [rows[40], rows[0]]


def test_a_disabled_endpoint_is_told_nothing_more(
    endpoint: tuple[CallbackEndpoint, str], caller: Caller, server: Server, operator: Person, stranger: Person
) -> None:
    made = row_of(call(caller))
    services.disable_endpoint(endpoint_id=endpoint[0].pk, reason="a test", by=operator.by)

    assert callbacks_delivery.send_due_deliveries() == 0

    assert server.heard == []
    assert kinds_of(made) == ["callback.failed"]
    row = CallbackDelivery.objects.get()
    with pytest.raises(Conflict):
        services.redeliver_callback(delivery_id=row.pk, by=operator.by)
    with pytest.raises(CallbackDelivery.DoesNotExist):
        services.redeliver_callback(delivery_id=row.pk, by=stranger.by)
    with pytest.raises(Conflict):
        services.rotate_secret(endpoint_id=endpoint[0].pk, by=operator.by)
    with pytest.raises(Conflict):
        services.disable_endpoint(endpoint_id=endpoint[0].pk, reason="a test", by=operator.by)


def test_people_and_keys_that_manage_agents_set_up_endpoints_and_see_what_became_of_messages(
    ready: None, caller: Caller, operator: Person, server: Server
) -> None:
    client, agent = operator.client(), caller.agent
    shown = client.post(f"/agents/{agent.wire_id}/callbacks/new", {"name": "orders", "url": f"{server.url}/hook"})
    assert b"whsec_" in shown.content
    endpoint = CallbackEndpoint.objects.get()
    assert b"whsec_" not in client.get(f"/agents/{agent.wire_id}/callbacks").content
    taken = client.post(f"/agents/{agent.wire_id}/callbacks/new", {"name": "orders", "url": server.url})
    assert taken.status_code == 422
    made = caller.post(f"/agents/{agent.wire_id}/callbacks", {"name": "more", "url": server.url})
    assert made.status_code == 201
    assert made.headers["Cache-Control"] == "no-store"
    assert made.json()["data"]["secret"].startswith("whsec_")
    server.status = 500
    told = row_of(call(caller))
    callbacks_delivery.send_due_deliveries()
    row = CallbackDelivery.objects.get()

    log = client.get("/callbacks/deliveries", {"state": "trying", "endpoint": endpoint.wire_id, "call": told.wire_id})
    assert row.wire_id in log.content.decode()
    assert row.wire_id not in client.get("/callbacks/deliveries?state=delivered").content.decode()
    assert client.get("/callbacks/deliveries?state=nothing").status_code == 422
    assert b"Answered 500." in client.get(f"/callbacks/deliveries/{row.wire_id}").content
    listed = caller.get("/callbacks/deliveries?state=trying").json()["data"]["deliveries"]
    assert [each["id"] for each in listed] == [row.wire_id]
    read = caller.get(f"/callbacks/deliveries/{row.wire_id}").json()["data"]
    assert [each["status"] for each in read["tries"]] == [500]

    server.status = 204
    client.post(f"/callbacks/deliveries/{row.wire_id}/again")
    assert callbacks_delivery.send_due_deliveries() == 1
    assert row.wire_id in client.get("/callbacks/deliveries?state=delivered").content.decode()
    rotated = client.post(f"/callbacks/{endpoint.wire_id}/rotate", {"overlap_hours": "1"})
    assert b"whsec_" in rotated.content
    assert client.post(f"/callbacks/{endpoint.wire_id}/rotate", {"overlap_hours": "x"}).status_code == 422
    assert client.post(f"/callbacks/{endpoint.wire_id}/disable", {}).status_code == 422
    assert client.post(f"/callbacks/{endpoint.wire_id}/disable", {"reason": "not needed"}).status_code == 302
    kinds = Fact.objects.filter(subject=endpoint.wire_id).order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["callback.made", "callback.rotated", "callback.disabled"]

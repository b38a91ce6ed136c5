"""Event sinks: do a tenant's facts reach its sinks as CloudEvents: in order, each at least once, and held up by nobody else?"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event
from django.db import connection, transaction
from django.utils import timezone

from evidence import services as evidence
from evidence.deliveries.queue import Sender
from evidence.keys.wrapped_keys import SEALED
from evidence.kinds import PAIR, Kind
from evidence.models import EventSink, Fact, Seal, SinkSecret
from evidence.sinks import delivery, services, webhook
from kernel.canonical import canonicalize
from kernel.ids import encode, new_id
from kernel.principal import Principal
from kernel.problems import Conflict, SchemaInvalid
from tests.support.append_only_triggers import rewritable
from tests.support.evidence_logs import seal_everything, signing_with, write_facts
from tests.support.http_server import Heard, Server, local_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
ECHO = "sample.tools.echo"


@pytest.fixture(autouse=True)
def keys() -> Iterator[Any]:
    with signing_with() as found:
        yield found


@pytest.fixture
def server(settings: Any) -> Iterator[Server]:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    with local_server() as found:
        yield found


@pytest.fixture
def by() -> Principal:
    return Principal.system("test", tenant_id=new_id())


@pytest.fixture
def other() -> Principal:
    return Principal.system("test", tenant_id=new_id())


def make(by: Any, server: Server, **said: Any) -> tuple[EventSink, str]:
    return services.make_sink(**{"name": "siem", "channel": "webhook", "url": f"{server.url}/in", "by": by} | said)


def events_of(heard: list[Heard]) -> list[dict[str, Any]]:
    """What the official SDK reads in the requests, after it has checked their attributes."""
    found = []
    for each in heard:
        body = json.loads(each.body)
        for one in body if isinstance(body, list) else [body]:
            message = HTTPMessage({"content-type": "application/cloudevents+json"}, json.dumps(one).encode())
            event = from_structured_event(message)
            found.append(event.get_attributes() | {"data": event.get_data()})
    return found


def indexes(heard: list[Heard]) -> list[int]:
    return [int(event["sequence"]) for event in events_of(heard)]


def is_signed(heard: Heard, secret: str) -> bool:
    signed = b".".join([heard.headers["webhook-id"].encode(), heard.headers["webhook-timestamp"].encode(), heard.body])
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return expected in heard.headers["webhook-signature"].split(" ")


def due_again() -> None:
    EventSink.objects.update(next_attempt_at=timezone.now())


def again(sink: EventSink) -> EventSink:
    return EventSink.objects.get(pk=sink.pk)


@pytest.mark.req("TOOLS-26", "TOOLS-18")
def test_a_call_arrives_as_its_begin_and_its_end_and_the_leaf_can_be_hashed_again(
    enable_by_review: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    caller: Caller,
    operator: Person,
    server: Server,
) -> None:
    _, secret = make(operator.by, server, from_beginning=True)
    enable_by_review()
    grant()
    call = caller.invoke(ECHO, {"text": "canary-7391"}).json()["call"]
    seal_everything()

    assert delivery.deliver_due() == Seal.objects.filter(tenant_id=operator.by.tenant_id).count()

    events = events_of(server.heard)
    assert [int(event["sequence"]) for event in events] == list(range(len(events)))
    types = [event["type"].removeprefix("toolhub.") for event in events]
    for name in ("ToolRegisteredEvent", "ToolEnabledEvent", "ToolInvokeBeginEvent", "ToolInvokeEndEvent", "FactEvent"):
        assert name in types
    of_call = {e["type"].removeprefix("toolhub."): e for e in events if e["subject"] == call["call_id"]}
    assert {"ToolInvokeBeginEvent", "ToolInvokeEndEvent"} <= set(of_call)
    end = of_call["ToolInvokeEndEvent"]
    fact = Fact.objects.get(kind="invocation.ended")
    assert end["id"] == fact.wire_id
    assert end["data"]["leaf"]["outcome"] == "succeeded"
    assert end["time"] == fact.occurred_at
    assert canonicalize(end["data"]["leaf"]) == bytes(fact.leaf)
    assert end["data"]["leaf_hash"] == "sha256:" + hashlib.sha256(b"\x00" + bytes(fact.leaf)).hexdigest()
    assert all(is_signed(each, secret) for each in server.heard)
    assert all(each.headers["content-type"].startswith("application/cloudevents+json") for each in server.heard)
    assert not any(b"canary-7391" in each.body for each in server.heard)
    assert delivery.deliver_due() == 0


@pytest.mark.req("TOOLS-26")
def test_a_sink_begins_with_what_happens_next_and_gets_the_kinds_that_it_wants(by: Principal, server: Server) -> None:
    write_facts(by.tenant_id, 3)
    seal_everything()
    sink, _ = make(by, server, kinds=["sink.paused"])
    seal_everything()
    assert delivery.deliver_due() == 0
    services.pause_sink(sink_id=sink.pk, reason="a test", by=by)
    services.resume_sink(sink_id=sink.pk, by=by)
    services.test_sink(sink_id=sink.pk, by=by)
    seal_everything()

    assert delivery.deliver_due() == 2

    assert [event["factkind"] for event in events_of(server.heard)] == ["sink.paused", "sink.tested"]
    assert again(sink).cursor == 7


@pytest.mark.req("TOOLS-26")
def test_many_go_in_one_request_where_the_sink_wants_that(by: Principal, server: Server) -> None:
    sink, secret = make(by, server, mode="batched", from_beginning=True)
    write_facts(by.tenant_id, 250)
    seal_everything()

    assert delivery.deliver_due() == 251

    assert [len(json.loads(each.body)) for each in server.heard] == [100, 100, 51]
    assert indexes(server.heard) == list(range(251))
    assert server.heard[0].headers["content-type"].startswith("application/cloudevents-batch+json")
    assert server.heard[0].headers["webhook-id"] == f"{sink.wire_id}-0-99"
    assert is_signed(server.heard[2], secret)


@pytest.mark.req("TOOLS-26")
def test_what_is_not_taken_is_sent_again_with_the_same_id_and_nothing_goes_past_it(
    by: Principal, server: Server
) -> None:
    sink, _ = make(by, server, mode="batched", from_beginning=True)
    write_facts(by.tenant_id, 2)
    seal_everything()
    server.status = 500

    assert delivery.deliver_due() == 0

    row = again(sink)
    assert (row.cursor, row.attempts, row.last_error) == (0, 1, "Answered 500.")
    assert delivery.deliver_due() == 0
    assert len(server.heard) == 1, "it waits"
    due_again()
    delivery.deliver_due()
    assert len(json.loads(server.heard[1].body)) == 1, "one goes first after a failure"
    server.status = 204
    due_again()
    assert delivery.deliver_due() == 3
    assert server.heard[1].headers["webhook-id"] == server.heard[2].headers["webhook-id"]
    assert indexes(server.heard[2:]) == [0, 1, 2]
    row = again(sink)
    assert (row.cursor, row.attempts, row.last_error, row.sent) == (3, 0, "", 3)


@pytest.mark.req("TOOLS-26")
@pytest.mark.parametrize(
    ("said", "seconds"),
    [("120", 120), ("0", 5), ("999999999", 3600), ("soon", 5), ("Sun, 22 Nov 2099 00:00:00 GMT", 3600)],
)
def test_a_server_says_how_long_it_is_left_alone(said: str, seconds: int, by: Principal, server: Server) -> None:
    sink, _ = make(by, server, from_beginning=True)
    seal_everything()
    server.status, server.headers = 503, {"Retry-After": said}
    before = timezone.now()

    delivery.deliver_due()

    wait = again(sink).next_attempt_at - before
    assert timedelta(seconds=seconds) <= wait < timedelta(seconds=seconds + 60)


@pytest.mark.req("TOOLS-26")
def test_a_server_that_wants_nothing_any_more_is_left_alone_until_a_person_resumes_it(
    by: Principal, server: Server
) -> None:
    sink, _ = make(by, server, from_beginning=True)
    seal_everything()
    server.status = 410

    delivery.deliver_due()

    assert again(sink).state == "paused"
    fact = Fact.objects.get(kind=Kind.SINK_REFUSED)
    assert (fact.subject, fact.actor_id) == (sink.wire_id, "system:events")
    due_again()
    assert delivery.deliver_due() == 0
    assert len(server.heard) == 1
    server.status = 200
    services.resume_sink(sink_id=sink.pk, by=by)
    seal_everything()
    assert delivery.deliver_due() == 3
    assert [event["factkind"] for event in events_of(server.heard[1:])] == ["sink.made", "sink.refused", "sink.resumed"]


@pytest.mark.req("TOOLS-26")
def test_the_dead_servers_of_one_tenant_hold_up_no_other(by: Principal, other: Principal, server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as dead:  # takes connections and never answers
        url = f"http://127.0.0.1:{dead.getsockname()[1]}"
        for number in range(6):
            make(by, server, name=f"dead-{number}", url=url, from_beginning=True)
        make(other, server, from_beginning=True)
        seal_everything()
        deliverer = Sender(delivery.QUEUE)
        assert deliverer.start_due() == 3, "two of one tenant, and the other's"
        mine = [each for each, sink in deliverer._running.items() if sink.tenant_id == other.tenant_id]

        assert [each.result() for each in mine] == [1]

        assert len(server.heard) == 1
        assert sum(each.done() for each in deliverer._running) == 1
        assert deliverer.start_due() == 0
    deliverer.finish()
    deliverer.close()
    assert EventSink.objects.filter(attempts=1).count() == 2


@pytest.mark.req("TOOLS-22", "TOOLS-26")
def test_each_tenant_gets_its_own_facts_in_its_own_order(by: Principal, other: Principal, server: Server) -> None:
    make(by, server, from_beginning=True)
    for _ in range(3):
        write_facts(by.tenant_id, 2)
        write_facts(other.tenant_id, 2)
    seal_everything()

    assert delivery.deliver_due() == 7

    assert {event["partitionkey"] for event in events_of(server.heard)} == {encode("ten", by.tenant_id)}
    assert indexes(server.heard) == list(range(7))


@pytest.mark.req("TOOLS-26")
def test_after_a_rotation_both_secrets_sign_until_the_old_one_ends(by: Principal, server: Server) -> None:
    sink, old = make(by, server, from_beginning=True)
    _, new = services.rotate_secret(sink_id=sink.pk, by=by)
    seal_everything()
    delivery.deliver_due()
    assert is_signed(server.heard[0], old)
    assert is_signed(server.heard[0], new)
    SinkSecret.objects.filter(ends_at__isnull=False).update(ends_at=timezone.now())
    services.test_sink(sink_id=sink.pk, by=by)
    seal_everything()

    delivery.deliver_due()

    assert is_signed(server.heard[-1], new)
    assert not is_signed(server.heard[-1], old)
    assert "evidence.SinkSecret" in {each.model for each in SEALED}


@pytest.mark.req("TOOLS-26")
def test_a_sink_that_was_ended_or_is_paused_gets_nothing(by: Principal, server: Server) -> None:
    ended, _ = make(by, server, name="ended")
    services.end_sink(sink_id=ended.pk, reason="a test", by=by)
    paused, _ = make(by, server, name="ended", from_beginning=True)
    services.pause_sink(sink_id=paused.pk, reason="a test", by=by)
    seal_everything()

    assert delivery.deliver_due() == 0

    assert server.heard == []
    assert not SinkSecret.objects.filter(sink=ended).exists()
    for act in (services.test_sink, services.rotate_secret, services.resume_sink):
        with pytest.raises(Conflict):
            act(sink_id=ended.pk, by=by)


@pytest.mark.req("TOOLS-26")
def test_a_claim_that_somebody_else_took_over_moves_nothing(
    by: Principal, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, _ = make(by, server, from_beginning=True)
    seal_everything()
    real = webhook.post_events

    def slow(*args: Any) -> None:
        real(*args)
        EventSink.objects.update(next_attempt_at=timezone.now() + timedelta(minutes=9))

    monkeypatch.setattr(webhook, "post_events", slow)

    assert delivery.deliver_due() == 0

    assert again(sink).cursor == 0, "who took it over sends the event again"


@pytest.mark.req("TOOLS-26")
def test_nothing_is_sent_past_a_leaf_that_is_gone(by: Principal, server: Server) -> None:
    sink, _ = make(by, server, from_beginning=True)
    write_facts(by.tenant_id, 3)
    seal_everything()
    with rewritable(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM evidence_seal WHERE leaf_index = 2")

    assert delivery.deliver_due() == 2

    assert again(sink).last_error.startswith("The log has no leaf 2")


@pytest.mark.req("TOOLS-26")
@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "http://169.254.169.254/latest"},
        {"url": "https://10.0.0.1/"},
        {"url": ""},
        {"kinds": ["no.such"]},
        {"channel": "file", "url": ""},
    ],
)
def test_what_the_hub_does_not_do_is_said_when_a_sink_is_made(wrong: dict[str, Any], by: Principal) -> None:
    said: dict[str, Any] = {"name": "siem", "channel": "webhook", "url": "https://siem.example.org/", "by": by}

    with pytest.raises(SchemaInvalid):
        services.make_sink(**said | wrong)

    assert not EventSink.objects.exists()


@pytest.mark.req("TOOLS-26")
def test_a_name_moves_to_another_address_and_is_not_followed(by: Principal, server: Server, settings: Any) -> None:
    sink, _ = make(by, server, from_beginning=True)
    seal_everything()
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["192.0.2.0/24"]

    delivery.deliver_due()

    assert server.heard == []
    assert "private address" in again(sink).last_error


@pytest.mark.req("TOOLS-26")
@pytest.mark.unpaired
def test_every_fact_of_every_kind_can_be_read_as_an_event(by: Principal, server: Server) -> None:
    make(by, server, mode="batched", from_beginning=True)
    kinds = [kind for kind in Kind if kind not in PAIR]  # the first test has these
    with transaction.atomic():
        for kind in kinds:
            evidence.record(kind=kind, subject="of this kind", actor=by)
    seal_everything()

    delivery.deliver_due()

    assert [event["factkind"] for event in events_of(server.heard)] == ["sink.made", *map(str, kinds)]

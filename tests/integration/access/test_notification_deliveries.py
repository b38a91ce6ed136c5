"""Notification deliveries: are people told, off the console, that something waits, and told once and safely?"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone

from access.budgets.alerts import notify_low_budgets
from access.display.services import set_display
from access.halts.services import throw_halt
from access.models import Budget, BudgetWindow, Delivery, Notification, Reach
from access.notifications import channels, deliveries
from access.notifications.mails import WORDS
from access.notifications.services import MAY_SAY, notify_channels
from access.policies.compiler import BUILTIN_DOCUMENT
from access.policies.services import draft_policy
from evidence.deliveries.messages import PAUSES
from evidence.models import Fact
from kernel.http import outbound
from kernel.problems import Conflict, SchemaInvalid
from tests.support.connected_models import set_script_prices
from tests.support.http_server import Server, local_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)
BODY = {"agent": "assistant", "tool": "sample.tools.echo", "url": "/consents/cns_1"}


@pytest.fixture
def server(settings: Any) -> Iterator[Server]:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    with local_server() as found:
        yield found


def tell(by: Any, event: str = "consent.requested", **body: str) -> int:
    with transaction.atomic():
        return notify_channels(event, subject="cns_1", body=BODY | body, tenant_id=by.tenant_id)


def due_again() -> None:
    Delivery.objects.filter(next_attempt_at__isnull=False).update(next_attempt_at=timezone.now())


def test_a_webhook_is_signed_as_standard_webhooks_says(server: Server, operator: Person) -> None:
    _, secret = channels.set_notification(
        channel="webhook", target=f"{server.url}/hook", events=["consent.requested"], by=operator.by
    )
    assert tell(operator.by) == 1

    assert deliveries.send_due() == 1

    heard = server.heard[0]
    signed = b".".join([heard.headers["webhook-id"].encode(), heard.headers["webhook-timestamp"].encode(), heard.body])
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert heard.headers["webhook-signature"] == f"v1,{expected}"
    body = json.loads(heard.body)
    assert body["type"] == "consent.requested"
    assert body["data"]["url"].endswith("/consents/cns_1")
    assert body["data"]["subject"] == "cns_1"
    delivery = Delivery.objects.get()
    assert heard.headers["webhook-id"] == delivery.wire_id
    assert delivery.delivered_at is not None
    assert delivery.next_attempt_at is None
    assert secret.encode() not in bytes(Notification.objects.get().secret)
    assert deliveries.send_due() == 0


def test_mail_names_things_and_links_and_holds_nothing_else(operator: Person, settings: Any) -> None:
    settings.TOOLHUB_EMAIL_URL = "smtp://mail.example.org"
    channels.set_notification(channel="email", target="ann@example.org", events=["consent.requested"], by=operator.by)
    tell(operator.by)

    assert deliveries.send_due() == 1

    message = mail.outbox[0]
    assert message.to == ["ann@example.org"]
    assert "/consents/cns_1" in message.body
    assert "sample.tools.echo" in message.body
    fact = Fact.objects.get(kind="notification.set")
    assert b"ann@example.org" not in bytes(fact.leaf)


def test_a_value_cannot_get_into_a_message(operator: Person) -> None:
    with pytest.raises(ValueError, match="arguments"):
        tell(operator.by, arguments="a secret")
    with pytest.raises(ValueError, match="nothing"):
        tell(operator.by, event="nothing.known")


def test_a_message_belongs_to_the_transaction_of_what_it_tells_of() -> None:
    from django.db import connection

    if connection.in_atomic_block:  # the test's own transaction: leave it, as a mistaken caller would be outside one
        connection.in_atomic_block = False
        try:
            with pytest.raises(RuntimeError, match="transaction"):
                notify_channels("consent.requested", subject="x", body={}, tenant_id=None)  # type: ignore[arg-type]
        finally:
            connection.in_atomic_block = True


def test_only_channels_of_the_tenant_that_want_the_event_are_told(
    operator: Person, stranger: Person, server: Server
) -> None:
    for by, events in ((operator.by, ["review.waiting"]), (stranger.by, ["consent.requested"])):
        channels.set_notification(channel="webhook", target=server.url, events=events, by=by)

    assert tell(operator.by) == 0
    assert tell(operator.by, event="review.waiting") == 1


@pytest.mark.parametrize(("said", "seconds"), [("120", 120), ("0", 10), ("999999999", 3600), ("soon", 10)])
def test_a_server_says_how_long_it_is_left_alone(said: str, seconds: int, server: Server, operator: Person) -> None:
    channels.set_notification(channel="webhook", target=server.url, events=["consent.requested"], by=operator.by)
    tell(operator.by)
    server.status, server.headers = 503, {"Retry-After": said}
    before = timezone.now()

    assert deliveries.send_due() == 0

    row = Delivery.objects.get()
    assert row.next_attempt_at is not None
    assert timedelta(seconds=seconds) <= row.next_attempt_at - before < timedelta(seconds=seconds + 60)
    Delivery.objects.update(attempts=len(PAUSES), next_attempt_at=before)
    deliveries.send_due()
    assert Delivery.objects.get().next_attempt_at is None, "given up, whatever the server says"


def test_a_failed_message_is_tried_again_with_growing_pauses_and_given_up(server: Server, operator: Person) -> None:
    channels.set_notification(channel="webhook", target=server.url, events=["consent.requested"], by=operator.by)
    tell(operator.by)
    server.status = 500
    pauses = []

    for _ in range(len(PAUSES)):
        assert deliveries.send_due() == 0
        row = Delivery.objects.get()
        assert row.next_attempt_at is not None
        pauses.append(row.next_attempt_at - timezone.now())
        due_again()
    assert deliveries.send_due() == 0

    row = Delivery.objects.get()
    assert pauses == sorted(pauses)
    assert len(set(pauses)) == len(pauses)
    assert (row.next_attempt_at, row.delivered_at) == (None, None)
    assert row.last_error == "Answered 500."
    assert deliveries.send_due() == 0
    assert len(server.heard) == len(PAUSES) + 1
    ids = {heard.headers["webhook-id"] for heard in server.heard}
    assert ids == {row.wire_id}


def test_a_message_that_was_given_up_can_be_sent_again(server: Server, operator: Person, stranger: Person) -> None:
    channels.set_notification(channel="webhook", target=server.url, events=["consent.requested"], by=operator.by)
    tell(operator.by)
    Delivery.objects.update(next_attempt_at=None, last_error="given up", attempts=9)
    row = Delivery.objects.get()
    with pytest.raises(Delivery.DoesNotExist):
        channels.redeliver_message(delivery_id=row.pk, by=stranger.by)

    channels.redeliver_message(delivery_id=row.pk, by=operator.by)

    assert deliveries.send_due() == 1
    assert Delivery.objects.get().last_error == ""


def test_two_senders_do_not_send_the_same_message(server: Server, operator: Person) -> None:
    channels.set_notification(channel="webhook", target=server.url, events=["consent.requested"], by=operator.by)
    tell(operator.by)
    seen, by_another = Delivery.objects.get(), Delivery.objects.get()

    assert deliveries.QUEUE.claim_due(seen)
    assert not deliveries.QUEUE.claim_due(by_another)


def test_an_ended_channel_is_told_nothing_more(server: Server, operator: Person) -> None:
    row, _ = channels.set_notification(
        channel="webhook", target=server.url, events=["consent.requested"], by=operator.by
    )
    tell(operator.by)

    channels.end_notification(notification_id=row.pk, by=operator.by)

    assert deliveries.send_due() == 0
    assert tell(operator.by) == 0
    assert server.heard == []
    assert Delivery.objects.get().last_error == "The channel was ended."
    with pytest.raises(Conflict):
        channels.redeliver_message(delivery_id=Delivery.objects.get().pk, by=operator.by)


def test_a_redirect_is_not_followed(server: Server, operator: Person) -> None:
    server.status, server.headers = 307, {"Location": f"{server.url}/elsewhere"}
    channels.set_notification(channel="webhook", target=server.url, events=["consent.requested"], by=operator.by)
    tell(operator.by)

    assert deliveries.send_due() == 0
    assert [heard.path for heard in server.heard] == ["/"]
    assert "307" in Delivery.objects.get().last_error


def test_a_name_that_leads_to_a_neighbour_is_not_asked_even_when_it_was_public_before(
    operator: Person, settings: Any, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = []
    channels.set_notification(
        channel="webhook", target="https://hooks.example.org/x", events=["consent.requested"], by=operator.by
    )
    tell(operator.by)
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in ("8.8.8.8", "10.0.0.5")]
    due = Delivery.objects.get()
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        assert deliveries.QUEUE.claim_due(due)
        assert deliveries.QUEUE.serve_row(due) == 0

    row = Delivery.objects.get()
    assert "private address" in row.last_error
    assert row.next_attempt_at is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"channel": "email", "target": "not an address"},
        {"channel": "webhook", "target": "https://192.168.1.1/"},
        {"channel": "pigeon", "target": "ann@example.org"},
        {"channel": "email", "target": "ann@example.org", "events": []},
        {"channel": "email", "target": "ann@example.org", "events": ["nothing.known"]},
    ],
)
def test_a_channel_that_cannot_be_is_not_made(wrong: dict[str, Any], operator: Person, settings: Any) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = []

    with pytest.raises(SchemaInvalid):
        channels.set_notification(**({"events": ["consent.requested"]} | wrong), by=operator.by)

    assert not Notification.objects.exists()


def test_a_server_that_never_ends_its_answer_holds_nobody(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    monkeypatch.setattr(outbound, "DEADLINE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]

        with pytest.raises(outbound.OutboundFailed, match="did not answer"):
            outbound.send_request(f"http://127.0.0.1:{port}/")


def test_a_budget_that_is_nearly_used_up_is_told_of_once_a_window(operator: Person, server: Server) -> None:
    by = operator.by
    channels.set_notification(channel="webhook", target=server.url, events=["budget.low"], by=by)
    budget = Budget.objects.create(
        tenant_id=by.tenant_id, scope="tenant", dimension="calls", amount=10, window_s=86_400, set_by=by.id
    )
    number = int(timezone.now().timestamp()) // 86_400
    window = BudgetWindow.objects.create(budget=budget, number=number, used=7)
    assert notify_low_budgets() == 0
    window.used = 8
    window.save()

    assert [notify_low_budgets(), notify_low_budgets()] == [1, 0]
    assert Delivery.objects.get().subject == budget.wire_id


def test_people_are_told_of_reviews_policies_and_kill_switches(
    operator: Person, server: Server, submit: Callable[..., Any]
) -> None:
    events = ["review.waiting", "policy.waiting", "halt.thrown"]
    channels.set_notification(channel="webhook", target=server.url, events=events, by=operator.by)

    version = submit("echo")
    policy = draft_policy(document=BUILTIN_DOCUMENT, by=operator.by)
    halt = throw_halt(reach=Reach.TOOL, target="sample.tools.echo", reason="a test", by=operator.by)

    told = set(Delivery.objects.values_list("event", "subject"))
    assert told == {
        ("review.waiting", version.wire_id), ("policy.waiting", policy.wire_id), ("halt.thrown", halt.wire_id)
    }  # fmt: skip
    deliveries.send_due()
    urls = {json.loads(heard.body)["data"]["url"] for heard in server.heard}
    assert len(urls) == 3
    for url in urls:  # each leads to a page
        assert operator.client().get(urlsplit(url).path).status_code == 200, url


def test_a_message_is_tried_for_more_than_half_a_day() -> None:
    assert sum(PAUSES, timedelta(0)) > timedelta(hours=12)


def read_mail(operator: Person, settings: Any, *, target: str) -> str:
    settings.TOOLHUB_EMAIL_URL = "smtp://mail.example.org"
    channels.set_notification(channel="email", target=target, events=["consent.requested"], by=operator.by)
    tell(operator.by, until="2026-11-29T22:30:00+00:00")
    Delivery.objects.update(created_at=datetime(2026, 11, 28, 23, 0, tzinfo=UTC))
    assert deliveries.send_due() == 1
    return str(mail.outbox[0].body)


@pytest.mark.req("CARD-6")
def test_mail_to_a_person_of_the_tenant_has_their_time_zone(operator: Person, settings: Any) -> None:
    operator.user.email = "Olga@example.org"
    operator.user.save(update_fields=["email"])
    set_display(time_zone="Asia/Kolkata", user=operator.user)

    body = read_mail(operator, settings, target="olga@example.org")

    assert "Time: 2026-11-29 04:30 UTC+5:30" in body
    assert "Until: 2026-11-30 04:00 UTC+5:30" in body


@pytest.mark.req("CARD-6")
def test_mail_to_anybody_else_has_the_zone_of_the_hub(operator: Person, stranger: Person, settings: Any) -> None:
    """Also where it is the address of somebody of another tenant."""
    stranger.user.email = "sam@example.org"
    stranger.user.save(update_fields=["email"])
    set_display(time_zone="Asia/Kolkata", user=stranger.user)

    body = read_mail(operator, settings, target="sam@example.org")

    assert "Time: 2026-11-28 23:00 UTC\n" in body
    assert "Until: 2026-11-29 22:30 UTC\n" in body


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize(
    ("dimension", "amount", "said"),
    [("calls", 20_000, "Calls: 20.000"), ("money", 1_500_000_000, "Money, by the prices of the policy: 1.500,00 EUR")],
)
def test_mail_about_a_budget_says_the_amount_as_the_person_writes_numbers(
    operator: Person, settings: Any, dimension: str, amount: int, said: str
) -> None:
    settings.TOOLHUB_EMAIL_URL = "smtp://mail.example.org"
    operator.user.email = "olga@example.org"
    operator.user.save(update_fields=["email"])
    set_display(time_zone="Europe/Berlin", number_style="comma", user=operator.user)
    rates = [{"effective_from": "2026-01-01", "rate": "0.9"}]
    set_script_prices(operator.by, currency="EUR", rates=rates, input="1", output="1")
    budget = Budget.objects.create(
        tenant_id=operator.by.tenant_id, scope="tenant", dimension=dimension, amount=amount, window_s=86_400
    )
    number = int(timezone.now().timestamp()) // budget.window_s
    BudgetWindow.objects.create(budget=budget, number=number, used=amount * 19 // 20)
    channels.set_notification(channel="email", target="olga@example.org", events=["budget.low"], by=operator.by)

    assert notify_low_budgets() == 1
    deliveries.send_due()

    assert f"Budget: The whole tenant · {said}" in mail.outbox[0].body


def test_every_word_that_a_message_may_say_has_a_name_for_people() -> None:
    assert set(WORDS) == MAY_SAY - {"url"}

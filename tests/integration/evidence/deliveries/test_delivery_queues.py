"""Delivery queues: does what waits to be sent find a sender: each row one, nobody behind somebody else, whatever happens
meanwhile?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from access.models import Delivery
from access.notifications import channels, deliveries
from access.notifications.services import notify_channels
from evidence.deliveries.queue import interleave_tenants
from evidence.deliveries.signed_requests import SignedRequest
from kernel.database.connections import database_time
from tests.support.http_server import Server, local_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(settings: Any) -> Iterator[Server]:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    with local_server() as found:
        yield found


@pytest.fixture
def messages(operator: Person, server: Server) -> None:
    """Six of them, to one webhook."""
    channels.set_notification(channel="webhook", target=server.url, events=["consent.requested"], by=operator.by)
    with transaction.atomic():
        for number in range(6):
            notify_channels("consent.requested", subject=f"cns_{number}", body={}, tenant_id=operator.by.tenant_id)


def test_a_pass_leaves_room_for_other_addresses_and_reads_no_row_by_itself(messages: None) -> None:
    with CaptureQueriesContext(connection) as queries:
        due = interleave_tenants(deliveries.QUEUE.list_due())

    assert len(due) == deliveries.QUEUE.limits["notification_id"]
    assert len(queries) <= 2, "the clock, and the rows with their tenants"


def test_upkeep_that_runs_once_leaves_nothing_that_is_due(
    messages: None, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Delivery.objects.count() > deliveries.QUEUE.limits["notification_id"], "more than one pass takes"

    call_command("upkeep", "--once")

    assert "delivered: 6\n" in capsys.readouterr().out
    assert {row.state for row in Delivery.objects.all()} == {"delivered"}
    assert len(server.heard) == 6, "each once"


def test_a_message_that_is_asked_for_anew_while_it_is_sent_is_sent_again(
    messages: None, server: Server, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = deliveries.QUEUE.list_due()[0]
    real = SignedRequest.send

    def ask_anew(request: SignedRequest) -> int:
        channels.redeliver_message(delivery_id=due.pk, by=operator.by)
        return real(request)

    assert deliveries.QUEUE.claim_due(due)
    with monkeypatch.context() as patched:
        patched.setattr(SignedRequest, "send", ask_anew)
        deliveries.QUEUE.serve_row(due)

    row = Delivery.objects.get(pk=due.pk)
    assert (row.state, row.attempts, row.delivered_at) == ("trying", 0, None)
    assert row.next_attempt_at is not None
    assert row.next_attempt_at <= database_time()


def test_what_cannot_be_written_down_ends_no_pass_and_is_left_to_the_next_sender(
    messages: None, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: Any) -> None:
        raise DatabaseError("away")

    with monkeypatch.context() as patched:
        patched.setattr(deliveries.QUEUE, "_settle", break_off)
        assert deliveries.send_due() == 0

    assert len(server.heard) == 6
    assert Delivery.objects.filter(delivered_at=None, next_attempt_at__gt=timezone.now(), attempts=1).count() == 6
    Delivery.objects.update(next_attempt_at=timezone.now())  # the claim is over
    assert deliveries.send_due() == 6
    ids = [heard.headers["webhook-id"] for heard in server.heard]
    assert sorted(ids[:6]) == sorted(ids[6:])

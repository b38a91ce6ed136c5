"""Channels: where the people of a tenant are told that something waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone

from access.models import Delivery, Notification
from access.notifications.services import EVENTS
from evidence import services as evidence
from evidence.deliveries.messages import send_again
from evidence.deliveries.signed_requests import check_receiver
from evidence.deliveries.signing_secrets import new_secret
from evidence.kinds import Kind
from evidence.leaves.deliveries import NotificationChannel
from evidence.leaves.reasons import StatedReason
from kernel.problems import Conflict, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from kernel.principal import Principal

MAX_CHANNELS = 50


def _check_target(channel: str, target: str) -> None:
    if channel == Notification.Channel.EMAIL:
        try:
            validate_email(target)
        except ValidationError as error:
            raise SchemaInvalid.at("/target", "This is not an e-mail address.") from error
    elif channel == Notification.Channel.WEBHOOK:
        check_receiver(target, pointer="/target")
    else:
        raise SchemaInvalid.at("/channel", "A channel is email or webhook.")


def _check_events(wanted: set[str]) -> None:
    if not wanted or wanted - set(EVENTS):
        raise SchemaInvalid.at("/events", f"Choose what to tell of: {', '.join(EVENTS)}.")


@transaction.atomic
def set_notification(*, channel: str, target: str, events: Iterable[str], by: Principal) -> tuple[Notification, str]:
    """A new channel; for a webhook also the secret that its messages are signed with, shown this once."""
    target, wanted = target.strip(), set(events)
    _check_target(channel, target)
    _check_events(wanted)
    rows = Notification.objects.filter(tenant_id=by.tenant_id, disabled_at=None)
    if rows.count() >= MAX_CHANNELS:
        raise Conflict(f"A tenant has at most {MAX_CHANNELS} channels.", remedy="End one that nobody needs.")
    key_id, wrapped, text = "", b"", ""
    if channel == Notification.Channel.WEBHOOK:
        key_id, wrapped, text = new_secret(tenant_id=by.tenant_id)
    row = Notification.objects.create(
        tenant_id=by.tenant_id,
        channel=channel,
        target=target,
        events=[event for event in EVENTS if event in wanted],
        secret_key_id=key_id,
        secret=wrapped,
        created_by=by.id,
    )
    is_webhook = channel == Notification.Channel.WEBHOOK
    host = (urlsplit(target).hostname or "") if is_webhook else None
    said = NotificationChannel(channel=str(row.channel), events=row.events, host=host)
    evidence.record(kind=Kind.NOTIFICATION_SET, subject=row.wire_id, actor=by, data=said)
    return row, text


@transaction.atomic
def change_notification(*, notification_id: UUID, events: Iterable[str], by: Principal) -> Notification:
    """Tell a channel of other things from now on; a webhook keeps its secret."""
    row = Notification.objects.select_for_update().get(pk=notification_id, tenant_id=by.tenant_id)
    if row.disabled_at is not None:
        raise Conflict("This channel is ended already.")
    wanted = set(events)
    _check_events(wanted)
    row.events = [event for event in EVENTS if event in wanted]
    row.save(update_fields=["events"])
    said = NotificationChannel(channel=str(row.channel), events=row.events, changed=True)
    evidence.record(kind=Kind.NOTIFICATION_SET, subject=row.wire_id, actor=by, data=said)
    return row


@transaction.atomic
def end_notification(*, notification_id: UUID, by: Principal, reason: str = "") -> Notification:
    """Tell this channel nothing more; what still waits for it is given up."""
    row = Notification.objects.select_for_update().get(pk=notification_id, tenant_id=by.tenant_id)
    if row.disabled_at is not None:
        raise Conflict("This channel is ended already.")
    row.disabled_at = timezone.now()
    row.save(update_fields=["disabled_at"])
    said = StatedReason(reason=reason.strip()) if reason.strip() else None
    evidence.record(kind=Kind.NOTIFICATION_ENDED, subject=row.wire_id, actor=by, data=said)
    return row


@transaction.atomic
def redeliver_message(*, delivery_id: UUID, by: Principal) -> Delivery:
    """Send a message again, now, whatever became of it before."""
    row = (
        Delivery.objects.select_for_update(of=("self",))
        .select_related("notification")
        .get(pk=delivery_id, notification__tenant_id=by.tenant_id)
    )
    if row.notification.disabled_at is not None:
        raise Conflict("This channel is ended.", remedy="Set up a new one.")
    send_again(row, last_error="")
    return row

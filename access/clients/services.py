"""Clients that are entered by hand: how one becomes known, and how it is removed.

For programs that can neither name themselves by a document nor register, or where the hub takes no registrations. Each is known to
its tenant alone. It opens nothing by itself: a person still says as which agent it may act.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Count

from access.connections.services import end_connections_with
from access.models import Connection, EnteredClient
from access.oauth.clients import ENTERED, MAX_NAME, clean_name, create_client, mixes_alphabets
from access.oauth.redirect_uris import RedirectRefused, check_redirect_uris
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.connections import EnteredClientTerms, RemovedClient
from kernel.database.connections import database_time
from kernel.problems import Conflict, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from django.db.models import QuerySet

    from kernel.principal import Principal

MAX_CLIENTS = 200  # of a tenant


def _check_name(name: str) -> str:
    """As it was written: a name that would be shown in another way is refused."""
    wanted = " ".join(name.split())
    if not wanted or len(wanted) > MAX_NAME:
        raise SchemaInvalid.at("/name", f"Give the program a name of at most {MAX_NAME} characters.")
    if clean_name(wanted) != wanted:
        raise SchemaInvalid.at("/name", "The name holds quotation marks or characters that nobody sees. Remove them.")
    if mixes_alphabets(wanted):
        raise SchemaInvalid.at("/name", "A word of the name mixes alphabets that look alike. Write it in one of them.")
    return wanted


def _check_redirect_uris(uris: Iterable[str]) -> list[str]:
    try:
        return check_redirect_uris(list(dict.fromkeys(uris)))
    except RedirectRefused as refused:
        raise SchemaInvalid.at("/redirect_uris", str(refused)) from refused


@transaction.atomic
def enter_client(
    *, name: str, redirect_uris: Iterable[str], confidential: bool, by: Principal
) -> tuple[EnteredClient, str]:
    """A new client and its secret, which is shown this once and not stored; empty where the program keeps none."""
    if EnteredClient.objects.filter(tenant_id=by.tenant_id).count() >= MAX_CLIENTS:
        raise Conflict(
            f"This tenant has {MAX_CLIENTS} programs that were entered by hand.",
            remedy="Remove those that nobody uses.",
        )
    application, secret = create_client(
        name=_check_name(name),
        redirect_uris=_check_redirect_uris(redirect_uris),
        confidential=confidential,
        source=ENTERED,
    )
    entered = EnteredClient.objects.create(tenant_id=by.tenant_id, application=application, entered_by=by.id)
    evidence.record(
        kind=Kind.CLIENT_ENTERED,
        subject=entered.wire_id,
        actor=by,
        data=EnteredClientTerms(
            client=entered.client_id,
            name=entered.name,
            redirect_uris=entered.redirect_uris,
            confidential=confidential,
        ),
    )
    return entered, secret


@transaction.atomic
def remove_client(*, client_id: UUID, reason: str, by: Principal) -> None:
    """It is known no more: its connections end, and its codes and tokens are good for nothing."""
    rows = EnteredClient.objects.select_for_update(of=("self",)).select_related("application")
    entered = rows.get(pk=client_id, tenant_id=by.tenant_id)
    ended = end_connections_with(entered.client_id, by=by)
    evidence.record(
        kind=Kind.CLIENT_REMOVED,
        subject=entered.wire_id,
        actor=by,
        data=RemovedClient(client=entered.client_id, connections=ended, reason=reason.strip()),
    )
    entered.application.delete()


def list_clients(*, by: Principal) -> QuerySet[EnteredClient]:
    return EnteredClient.objects.filter(tenant_id=by.tenant_id).select_related("application")


def count_connections(clients: Iterable[EnteredClient], *, by: Principal) -> dict[str, int]:
    """How many are open, by the client id of those that have any."""
    ids = [each.client_id for each in clients]
    live = Connection.objects.live(database_time()).filter(tenant_id=by.tenant_id, client_id__in=ids)
    return dict(live.values_list("client_id").annotate(Count("pk")))

"""Tenancy: whose rows the database may show right now.

A second wall behind the explicit filters, on PostgreSQL: within :func:`acting_for` every statement runs as a role that row
level security binds to one tenant; within :func:`acting_for_nobody` it sees no tenant's rows at all. A web request begins
for nobody and acts for a tenant once it is known; background work is :func:`hub_wide` unless it narrows itself. Elsewhere
(SQLite) there is only the first wall.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING
from uuid import UUID

from kernel.observability.log_context import note_for_log, noted_for_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.http import HttpRequest, HttpResponseBase

# What the scope may be beside a tenant's id, as text for the database.
HUB = "*"
NOBODY = ""
NO_TENANT = UUID(int=0)  # whose facts are the hub's own: about requests of which nobody knows where they belong

_scope: ContextVar[str] = ContextVar("toolhub_tenant_scope", default=HUB)


def current_scope() -> str:
    """The tenant's id, ``NOBODY`` or ``HUB``."""
    return _scope.get()


@contextmanager
def _within(scope: str) -> Iterator[None]:
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def acting_for(tenant_id: UUID) -> Iterator[None]:
    with _within(str(tenant_id)), noted_for_log(tenant=str(tenant_id)):
        yield


@contextmanager
def acting_for_nobody() -> Iterator[None]:
    with _within(NOBODY):
        yield


@contextmanager
def hub_wide() -> Iterator[None]:
    """For what concerns more than one tenant: who signs in, sweeping, moving the followers of a shared tool."""
    with _within(HUB):
        yield


def act_for(tenant_id: UUID) -> None:
    """For the rest of this request. :func:`scoped_request` forgets it when the request ends."""
    _scope.set(str(tenant_id))
    note_for_log(tenant=str(tenant_id))


def scoped_request(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Request middleware: nobody's rows are seen until it is known for whom the request acts."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        with acting_for_nobody():
            return get_response(request)

    return middleware

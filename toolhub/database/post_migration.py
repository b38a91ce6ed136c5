"""Post-migration: what is done after each migration, when every table exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.core.management.base import CommandError
from django.db import connections
from django.db.models.signals import post_migrate
from django.dispatch import receiver

from evidence.append_only import keep_evidence
from evidence.months.partitions import (
    MonthsBusy,
    add_months,
    bound_first_part,
    divide_facts,
    free_first_part,
    install_month_functions,
    is_divided,
    try_often,
)
from invocations.evidence_pairs.constraints import install_pair_triggers
from invocations.unfinished_calls.lost_rows import find_lost_rows, mend_rows
from invocations.unfinished_calls.triggers import keep_unfinished_calls
from registry.discovery.search import install_search_triggers
from toolhub.database.hub_role import grant_rights
from toolhub.database.row_level_security import install_policies

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper


# Of our applications with tables the last one; `toolhub` has none, and gets no signal of its own.
@receiver(post_migrate, sender=apps.get_app_config("invocations"))
def after_migration(*, using: str, **_: Any) -> None:
    connection: BaseDatabaseWrapper = connections[using]
    _put_up(connection)
    if connection.vendor == "postgresql":
        _keep_months(connection)


def _put_up(connection: BaseDatabaseWrapper) -> None:
    keep_evidence(connection)
    if connection.vendor == "postgresql":
        install_month_functions(connection)
    install_pair_triggers(connection)
    install_search_triggers(connection)
    if not keep_unfinished_calls(connection):
        mend_rows(connection, find_lost_rows(connection))
    _open_tables(connection)


def _open_tables(connection: BaseDatabaseWrapper) -> None:
    """Rights come last: no table can be reached before its policy stands."""
    if connection.vendor == "postgresql" and install_policies(connection):
        grant_rights(connection)


def _keep_months(connection: BaseDatabaseWrapper) -> None:
    """Nobody finds the facts without what is put up around them: they are divided and it is put up again in one transaction."""
    with connection.cursor() as cursor:
        divided = is_divided(cursor)
    try:
        if not divided:
            _divide_facts(connection)
        try_often(connection, lambda _: add_months(connection))
    except MonthsBusy as busy:
        raise CommandError(str(busy)) from busy


def _divide_facts(connection: BaseDatabaseWrapper) -> None:
    """Whoever gives up, by Ctrl-C too, frees the first part: otherwise, once its time has come, no fact is written any more."""
    try:
        bound = bound_first_part(connection)
        try_often(connection, lambda _: _divide(connection, bound))
    except BaseException as first:
        try:
            free_first_part(connection)
        except MonthsBusy as busy:
            if isinstance(first, MonthsBusy):
                raise
            raise CommandError(f"The facts were not divided by month: {first!r}. {busy}") from first
        raise


def _divide(connection: BaseDatabaseWrapper, bound: UUID) -> None:
    """What the facts lost is put up again, and no more: nobody reads or writes a fact meanwhile."""
    divide_facts(connection, bound)
    keep_evidence(connection)
    install_pair_triggers(connection)
    _open_tables(connection)
    add_months(connection)

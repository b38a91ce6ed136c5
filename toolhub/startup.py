"""Startup: whether this process may start, or would hide that something was lost.

In the production shape keys come from `manage.py init` or from whoever installs the hub, never from a process that happens to
start first: a key made anew would make stored values unreadable and look like a working hub.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import DatabaseError, connection, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from evidence.keys.check_values import ANOTHER, FOREIGN, unfit_keys
from evidence.keys.key_file import read_key_file
from evidence.keys.keystore import get_keystore
from evidence.problems import KeyUnavailable
from toolhub.database.running_processes import find_roles_to_stop, list_processes
from toolhub.variables import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.getLogger("toolhub.startup")
INIT = "Type `manage.py init` once for a new hub, or restore the file from its backup."


def missing_keys() -> list[tuple[str, str]]:
    """What keeps the hub from starting: sentence and remedy. Nothing in the embedded default, which makes its own keys."""
    found = []
    if not settings.TOOLHUB_SECRET_KEY_GIVEN and not settings.TOOLHUB_SECRET_KEY_FILE.exists():
        found.append(
            ("There is no key to sign sessions with: TOOLHUB_SECRET_KEY is not set, and there is no file for it.", INIT)
        )
    try:
        if settings.TOOLHUB_KEYSTORE != "file":
            get_keystore()
        elif settings.TOOLHUB_KEY_FILE.exists() or not settings.TOOLHUB_EMBEDDED:
            read_key_file(settings.TOOLHUB_KEY_FILE)
    except KeyUnavailable as problem:
        found.append((problem.detail, problem.remedy))
    return found


@register()
def check_keys(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Stops every command but `init`, which mends it."""
    del app_configs
    return [Error(sentence, hint=remedy, id="toolhub.E001") for sentence, remedy in missing_keys()]


@register(Tags.database)
def check_older_database(app_configs: Any, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Stops `migrate` at a database that has some of the steps which are one migration by now: the others are not here any more."""
    del app_configs
    hint = (
        "`git log -S {step} -- {app}/migrations/{name}.py` names the commit that made them one: migrate with the "
        "commit before it, then with this one."
    )
    found: list[CheckMessage] = []
    squashed = MigrationLoader(None).replacements
    for alias in databases or []:
        applied = MigrationRecorder(connections[alias]).applied_migrations().keys()
        for (app, name), migration in squashed.items():
            missing = set(migration.replaces) - applied
            if 0 < len(missing) < len(migration.replaces):
                step = min(missing)[1]
                sentence = f"The database is too old: {app} lacks {step}, which is a part of {name} by now."
                found.append(Error(sentence, hint=hint.format(app=app, name=name, step=step), id="toolhub.E002"))
    return found


@register(Tags.database)
def check_running_processes(app_configs: Any, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Stops `migrate` while somebody is at work who cannot be beside what is to come. One of before says nothing of itself, and may be
    any. On SQLite one process is the hub."""
    del app_configs
    hint = (
        "Nothing was changed. Stop it (it finishes what it does) and type this again. A process of before may be any: it is of a "
        "version that does not say what it is. The sessions of one whose host is gone are ended by a superuser, or by the role that "
        "it signed in as: `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{}'`."
    )
    found: list[CheckMessage] = []
    for alias in databases or []:
        stopped = find_roles_to_stop(connections[alias]) if connections[alias].vendor == "postgresql" else {}
        for each in list_processes(connections[alias]) if stopped else []:
            who = each.name
            migration = stopped.get(who.role) if who.role else next(iter(stopped.values()))
            if migration:
                which = f"{who.role or 'a process of before'} {who.pid} on {who.host}"
                sentence = f"{which} works on this database, and cannot beside {migration}."
                found.append(Error(sentence, hint=hint.format(who), id="toolhub.E003"))
    return found


def missing_proxy() -> str:
    """What is wrong where TLS ends at a proxy that nobody named; empty: nothing."""
    if not settings.SESSION_COOKIE_SECURE or settings.TOOLHUB_PROXIES:
        return ""
    return (
        "TOOLHUB_PUBLIC_URL is https, and TOOLHUB_PROXIES names no proxy: every caller has the address of who connects."
    )


@register("security", deploy=True)
def check_proxy(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Without it nobody is sent to https either, and browsers are not told to keep to it."""
    del app_configs
    hint = "Name the proxy that speaks TLS: TOOLHUB_PROXIES=127.0.0.1/32 where it is on the same host."
    return [CheckWarning(sentence, hint=hint, id="toolhub.W002") for sentence in (missing_proxy(),) if sentence]


@register()
def check_settings(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """A name that is mistyped would otherwise be a setting that somebody believes in."""
    del app_configs
    return [CheckWarning(sentence, id="toolhub.W001") for sentence in VARIABLES.unknown()]


def say_unknown_settings() -> None:
    """For processes that no command starts, and that so make no checks."""
    for sentence in VARIABLES.unknown():
        log.warning(sentence)


def refuse_foreign_keys() -> None:
    """Ends the process with the sentence when a master key is another hub's. What cannot be asked now is asked with each value."""
    try:
        with ThreadPoolExecutor(1) as thread:  # a server may load this in its event loop, where Django asks no database
            unfit = thread.submit(_unfit_keys).result()
    except (KeyUnavailable, DatabaseError) as error:
        log.warning("The master keys are not held against the database yet: %s", error)
        return
    if unfit:
        raise SystemExit(f"toolhub does not start. {FOREIGN.format(unfit[0])} {ANOTHER}")


def _unfit_keys() -> list[str]:
    try:
        return unfit_keys(get_keystore())
    finally:
        connection.close()


def refuse_without_keys() -> None:
    """Ends the process with the sentence when a key is missing."""
    found = missing_keys()
    if found:
        raise SystemExit("\n".join(f"toolhub does not start. {sentence} {remedy}" for sentence, remedy in found))

"""May this process start, or would it hide that something was lost?

In the production shape keys come from `manage.py init` or from whoever installs the hub, never from a process that happens to
start first: a key made anew would make stored values unreadable and look like a working hub.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as CheckWarning
from django.db import DatabaseError, connection

from evidence.check_values import ANOTHER, FOREIGN, unfit_keys
from evidence.keyfile import read_key_file
from evidence.keystore import keystore
from evidence.problems import KeyUnavailable
from toolhub.variables import VARIABLES

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
            keystore()
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
        return unfit_keys(keystore())
    finally:
        connection.close()


def refuse_without_keys() -> None:
    """Ends the process with the sentence when a key is missing."""
    found = missing_keys()
    if found:
        raise SystemExit("\n".join(f"toolhub does not start. {sentence} {remedy}" for sentence, remedy in found))

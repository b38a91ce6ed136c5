"""Migrated databases: one of each engine, made once in a run of `make test`, of which its processes and hubs begin with copies.

To apply all migrations takes a processor nine seconds, and a run has two dozen databases. A copy is migrated like an empty one: that
finds every migration applied, and does what follows each run of `migrate`. Without the folder (tests that are run by hand), and where
a hub from nothing is what a test is about, databases begin empty.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import psycopg

from scripts.provision.parts import MIGRATED
from tests.e2e.processes import clean_environment, python, run

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPLATE = "test_toolhub_migrated"  # on the server of the tests, which ends with them
FILE = "toolhub.sqlite3"


def find_migrated_postgresql() -> str:
    """The URL of a migrated database to which nobody is connected; empty where there is none."""
    folder = os.environ.get(MIGRATED)
    if not folder:
        return ""
    server = os.environ["TOOLHUB_TEST_DATABASE_URL"]
    url = urlunsplit(urlsplit(server)._replace(path=f"/{TEMPLATE}"))
    with _made_once(Path(folder) / "postgresql") as missing:
        if missing:
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {TEMPLATE}")
            _migrate(TOOLHUB_DATABASE_URL=url, TOOLHUB_REDIS_URL=os.environ["TOOLHUB_TEST_REDIS_URL"])
    return url


def copy_migrated_sqlite(to: Path) -> bool:
    """Whether there is one; the file ``to`` is a copy of it then."""
    folder = os.environ.get(MIGRATED)
    if not folder:
        return False
    made = Path(folder) / FILE
    with _made_once(Path(folder) / "sqlite") as missing:
        if missing:
            _migrate(keep=made)
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(made, to)
    return True


@contextmanager
def _made_once(mark: Path) -> Iterator[bool]:
    """Whether what the mark stands for is to be made inside the block. One process at a time is there."""
    with mark.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = not mark.exists()
        yield missing
        mark.touch()


def _migrate(*, keep: Path | None = None, **settings: str) -> None:
    with tempfile.TemporaryDirectory() as data:
        env = clean_environment(TOOLHUB_DATA_DIR=data, TOOLHUB_SECRET_KEY="of nothing that stays" * 3, **settings)
        run(python("manage.py", "migrate", "-v", "0", "--skip-checks"), env)
        if keep:
            shutil.copyfile(Path(data) / FILE, keep)

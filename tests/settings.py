"""Settings of the tests: how is the hub configured in tests?

The database is PostgreSQL (``TOOLHUB_TEST_DATABASE_URL``, set by `make test`) or, with ``TOOLHUB_TEST_DB=sqlite``, a SQLite
file. Broker and worker are the embedded ones; `tests/e2e` starts whole processes with settings of their own.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import dj_database_url

HERE = Path(__file__).resolve().parent
_data = tempfile.mkdtemp(prefix="toolhub-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)

os.environ |= {
    "TOOLHUB_ENV_FILE": "",  # whoever tests may have a hub here
    "TOOLHUB_DATA_DIR": _data,
    "TOOLHUB_SECRET_KEY": "only for tests, and long enough for everybody who checks its length",
    "TOOLHUB_TOOLS_PATH": os.pathsep.join([str(HERE.parent / "tools"), str(HERE / "tools")]),
    "TOOLHUB_SANDBOX": os.environ.get("TOOLHUB_SANDBOX", "fake"),
    "TOOLHUB_INSTANCE": _data,
    "TOOLHUB_LOG_LEVEL": "ERROR",
}
os.environ.pop("TOOLHUB_DATABASE_URL", None)
os.environ.pop("TOOLHUB_REDIS_URL", None)

from toolhub.settings import *  # noqa: E402, F403
from toolhub.settings import DATABASES, POSTGRESQL  # noqa: E402

TESTSERVER_HOSTS = ["testserver", "127.0.0.1", "localhost"]
ALLOWED_HOSTS = TESTSERVER_HOSTS
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
TOOLHUB_LEASE_S = 2
TOOLHUB_QUEUE_WAIT_S = 10
TOOLHUB_SWEEP_INTERVAL_S = 1
TOOLHUB_RATE_FAILED_KEYS = TOOLHUB_RATE_REFUSED_CALLS = 0  # all tests are one address; those about rates set their own

if os.environ.get("TOOLHUB_TEST_DB") != "sqlite":
    url = os.environ.get("TOOLHUB_TEST_DATABASE_URL")
    if not url:
        raise SystemExit(
            "The tests need PostgreSQL. Type `make test`, or `scripts/testenv start` and source .testenv/env."
        )
    DATABASES["default"] = dj_database_url.parse(url, engine=POSTGRESQL)
    if name := os.environ.get(
        "TOOLHUB_TEST_DATABASE_NAME"
    ):  # of tests that run beside others (scripts/provision/parts.py)
        DATABASES["default"]["TEST"] = {"NAME": name}
else:
    DATABASES["default"]["TEST"] = {"NAME": str(Path(_data) / "tests.sqlite3")}  # a file: threads share it

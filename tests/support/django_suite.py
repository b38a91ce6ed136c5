"""Django suite: the settings under which Django's own tests run here, and the runner that writes down how each of them ended.

It is a module of settings for Django's `runtests.py`, in a process of its own (tests/postgresql/test_django_suites.py); the
environment says which engine and which databases.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dj_database_url
from django.db import connection
from django.test.runner import DiscoverRunner
from django.test.utils import iter_test_cases  # type: ignore[attr-defined]  # the stubs do not know it

if TYPE_CHECKING:
    import unittest

ENGINE, POOLED, OUTCOMES = "SUITE_ENGINE", "SUITE_POOLED", "SUITE_OUTCOMES"
MOST_CONNECTIONS = 8


def _build_database(name: str) -> dict[str, Any]:
    parsed = dj_database_url.parse(os.environ["TOOLHUB_TEST_DATABASE_URL"], engine=os.environ[ENGINE])
    pool = {"pool": {"min_size": 1, "max_size": MOST_CONNECTIONS, "timeout": 5}} if os.environ[POOLED] else {}
    return {**parsed, "NAME": name, "OPTIONS": pool}


class RecordingRunner(DiscoverRunner):
    """Django's, which writes ``{"walls": …, "outcomes": {test: how it ended}}`` beside its usual report."""

    def run_suite(self, suite: unittest.TestSuite, **kwargs: Any) -> Any:
        outcomes = {test.id(): "passed" for test in iter_test_cases(suite)}
        result = super().run_suite(suite, **kwargs)
        for outcome in ("skipped", "expectedFailures", "failures", "errors"):
            for test, _ in getattr(result, outcome):
                outcomes[getattr(test, "test_case", test).id()] = outcome
        outcomes |= {test.id(): "unexpected success" for test in result.unexpectedSuccesses}
        found = {"walls": getattr(connection, "walls", None), "outcomes": outcomes}
        Path(os.environ[OUTCOMES]).write_text(json.dumps(found))
        return result


if ENGINE in os.environ:  # what reads the runner only needs none of it
    DATABASES = {alias: _build_database(f"toolhub_django_{alias}") for alias in ("default", "other")}
SECRET_KEY = "only for Django's tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = f"{__name__}.RecordingRunner"

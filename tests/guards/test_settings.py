"""Do the settings keep what the way of a call relies on?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

from toolhub.broker import Transport
from toolhub.kernel.written import networks_of, runtimes_of

ROOT = Path(__file__).resolve().parents[2]


def test_requests_do_not_run_in_one_transaction() -> None:
    """Evidence of a refused call must survive the refusal, and nothing may be held while a tool runs."""
    assert not any(database["ATOMIC_REQUESTS"] for database in settings.DATABASES.values())
    assert all(database["AUTOCOMMIT"] for database in settings.DATABASES.values())


def test_every_form_is_protected_against_forgery() -> None:
    assert "django.middleware.csrf.CsrfViewMiddleware" in settings.MIDDLEWARE


def test_browsers_run_nothing_that_is_not_ours() -> None:
    policy = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]

    assert policy["default-src"] == ["'none'"]
    assert {name: value for name, value in policy.items() if set(value) - {"'self'", "'none'"}} == {}


def test_mistakes_are_not_shown_to_callers() -> None:
    assert settings.DEBUG is False


@pytest.mark.django_db
def test_every_change_of_a_model_has_its_migration() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0, stdout=StringIO())


def in_production(*, redis: bool = True) -> subprocess.CompletedProcess[str]:
    """The settings as a separate process with a database and a broker would read them."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOOLHUB_")}
    env |= {
        "TOOLHUB_ENV_FILE": "",
        "TOOLHUB_DATABASE_URL": "postgresql://hub@localhost/hub",
        "TOOLHUB_SECRET_KEY": "x" * 50,
    }
    env |= {"TOOLHUB_REDIS_URL": "redis://localhost/0"} if redis else {}
    program = "import json; from toolhub import settings as s; print(json.dumps(s.CELERY, default=str))"
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )


def test_a_sender_gives_up_at_once_and_a_worker_takes_no_more_than_it_can_run_and_waits_for_its_broker() -> None:
    celery: dict[str, Any] = json.loads(in_production().stdout)

    options = celery["broker_transport_options"]
    assert celery["task_publish_retry"] is False
    assert options["max_retries"] * options["interval_max"] < 1
    assert (celery["task_acks_late"], celery["worker_prefetch_multiplier"]) == (True, 1)
    assert celery["broker_transport"] == f"{Transport.__module__}:{Transport.__qualname__}"
    assert celery["broker_connection_max_retries"] is None
    assert celery["task_ignore_result"] is True
    assert celery["accept_content"] == ["json"]


def test_half_a_production_shape_is_refused_with_a_sentence() -> None:
    done = in_production(redis=False)

    assert done.returncode != 0
    assert "Set both TOOLHUB_DATABASE_URL and TOOLHUB_REDIS_URL" in done.stderr


@pytest.mark.req("TOOLS-17")
def test_the_operator_names_the_runtimes() -> None:
    assert runtimes_of("{}") == {}
    assert runtimes_of('{"default": "runc", "untrusted": "runsc"}') == {"default": "runc", "untrusted": "runsc"}


@pytest.mark.parametrize("text", ["", "runc", "[]", "{", '{"default": ""}', '{"default": 1}', '{"trusted": "runc"}'])
def test_names_of_runtimes_that_cannot_be_meant_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="for example"):
        runtimes_of(text)


def test_the_operator_names_networks_that_tools_may_reach() -> None:
    assert networks_of("", "TOOLHUB_X") == []
    assert networks_of("10.20.0.0/16, 192.168.7.9/32,fd00::/8", "TOOLHUB_X") == [
        "10.20.0.0/16",
        "192.168.7.9/32",
        "fd00::/8",
    ]


@pytest.mark.parametrize("text", ["10.20.0.1/16", "intern.example.org", "10.20.0.0/16;10.30.0.0/16", "*"])
def test_networks_that_cannot_be_meant_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="TOOLHUB_X is for example"):
        networks_of(text, "TOOLHUB_X")

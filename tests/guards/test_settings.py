"""Settings: do the settings keep what the way of a call relies on?"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from access.roles import Role
from kernel import dotenv, fault_injection
from toolhub.brokers.redis import Transport
from toolhub.management.commands import doctor
from toolhub.management.reference import settings as reference
from toolhub.startup import check_settings
from toolhub.variables import VARIABLES
from toolhub.variables import table as declared

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


def in_production(*, redis: bool = True, database: bool = True) -> subprocess.CompletedProcess[str]:
    """The settings as a separate process with a database and a broker would read them."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOOLHUB_")}
    env |= {
        "TOOLHUB_ENV_FILE": "",
        "TOOLHUB_SECRET_KEY": "x" * 50,
    }
    env |= {"TOOLHUB_DATABASE_URL": "postgresql://hub@localhost/hub"} if database else {}
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


def of_the_page() -> dict[str, str]:
    """The settings that the page on the production shape has written by hand, but for database, broker and keys."""
    page = (ROOT / "docs" / "how-to" / "run-the-production-shape.md").read_text()
    written = page.partition("cat > /etc/toolhub/hub.env <<END\n")[2].partition("END\n")[0]
    lines = dict(line.split("=", 1) for line in written.splitlines())
    return {name: lines[name] for name in lines if not re.search(r"_(FILE|KEY|DIR)$|(DATABASE|REDIS)_URL$", name)}


def checked_for_deployment(given: dict[str, str], tmp_path: Path) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOOLHUB_")}
    env |= {
        "DJANGO_SETTINGS_MODULE": "toolhub.settings",
        "TOOLHUB_ENV_FILE": "",
        "TOOLHUB_DATA_DIR": str(tmp_path),
    } | given
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]

    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("given", [{}, of_the_page()], ids=["make run", "the page on the production shape"])
def test_a_deployment_check_has_nothing_to_say(given: dict[str, str], tmp_path: Path) -> None:
    done = checked_for_deployment(given, tmp_path)

    assert done.returncode == 0, done.stderr


def test_a_deployment_check_names_the_setting_of_a_proxy_that_nobody_named(tmp_path: Path) -> None:
    done = checked_for_deployment(of_the_page() | {"TOOLHUB_PROXIES": ""}, tmp_path)

    assert done.returncode != 0
    assert re.findall(r"\(([\w.]+)\)", done.stderr) == ["toolhub.W002"]
    assert "TOOLHUB_PROXIES=127.0.0.1/32" in done.stderr


def test_forms_of_the_hubs_own_pages_are_taken_behind_a_proxy(tmp_path: Path) -> None:
    program = "from toolhub import settings as s; print(s.CSRF_TRUSTED_ORIGINS, s.TOOLHUB_PROXIES)"
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOOLHUB_")}
    env |= of_the_page() | {"TOOLHUB_ENV_FILE": "", "TOOLHUB_DATA_DIR": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )

    assert done.stdout == "['https://hub.example.org'] ['127.0.0.1/32']\n"


def test_redis_without_a_database_is_refused_with_a_sentence() -> None:
    done = in_production(database=False)

    assert done.returncode != 0
    assert "TOOLHUB_REDIS_URL goes with TOOLHUB_DATABASE_URL" in done.stderr


@pytest.mark.req("OPS-6")
def test_a_database_without_redis_is_a_production_shape() -> None:
    done = in_production(redis=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["broker_transport"] == "toolhub.brokers.in_process:Transport"


# The table.

PRODUCT = ("access", "evidence", "invocations", "kernel", "llm", "registry", "sandbox", "toolhub")
# Names that are read without the table: where settings come from, and points of tests that must not be settings.
READ_ELSEWHERE = {module.__file__ for module in (dotenv, fault_injection, declared)}
# Read from the environment of a box or of a child process, which is no hub's.
OF_CHILDREN = {"TOOLHUB_REPORT_FD", "TOOLHUB_PROGRESS_FD"}


def read_names(source: str) -> set[str]:
    """TOOLHUB_… names that are looked up in an environment: ``environ[…]``, ``environ.get(…)``, ``getenv(…)``."""
    found: set[str] = set()
    if "TOOLHUB_" not in source:
        return found
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name))):
                found.add(name)
            case ast.Call(
                func=ast.Attribute(attr="get" | "pop" | "getenv"), args=[ast.Constant(value=str(name)), *_]
            ) if "environ" in ast.unparse(node.func) or "getenv" in ast.unparse(node.func):
                found.add(name)
    return {name for name in found if name.startswith("TOOLHUB_")}


def test_no_code_of_the_hub_reads_a_setting_past_the_table() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for package in PRODUCT
        for path in (ROOT / package).rglob("*.py")
        if str(path) not in READ_ELSEWHERE
        for name in read_names(path.read_text()) - OF_CHILDREN
    }

    assert found == set()
    assert read_names("import os\nos.environ.get('TOOLHUB_X') or os.environ['TOOLHUB_Y']") == {"TOOLHUB_X", "TOOLHUB_Y"}


def test_every_declared_setting_is_a_setting_of_django_by_the_same_name() -> None:
    ours = [row for row in VARIABLES.rows.values() if not row.elsewhere]

    assert [row.name for row in ours if not hasattr(settings, row.name)] == []
    assert len(ours) > 70


def test_every_setting_says_what_it_is_for_who_reads_it_and_what_is_allowed() -> None:
    for row in VARIABLES.rows.values():
        assert row.about.endswith((".", "32", "sock")), row
        assert row.allowed
        assert row.roles
        assert row.name.endswith(("_S", "_MB", "_DAYS", "_HOURS", "_PERCENT")) <= bool(row.unit), row


def test_passwords_keys_and_tokens_are_marked_as_secrets() -> None:
    words = re.compile(r"PASSWORD$|SECRET(_KEY)?$|MASTER_KEYS$|TOKEN$|(DATABASE|REDIS|EMAIL)_URL$")
    ours = (row for row in VARIABLES.rows.values() if not row.elsewhere)

    assert [row.name for row in ours if words.search(row.name) and not row.secret] == []


def test_the_page_and_the_sample_name_every_setting_once_and_hold_nothing_of_this_environment() -> None:
    page, sample = reference.settings_page(), reference.dotenv_sample()

    for row in VARIABLES.rows.values():
        assert page.count(f"\n| `{row.name}` |") == 1
        assert sample.count(f"\n#{row.name}=") == (not row.elsewhere or row.roles == ("docker compose",))
    assert str(settings.TOOLHUB_DATA_DIR) not in page + sample
    assert str(ROOT) not in page + sample


def test_the_page_has_no_word_that_a_browser_takes_for_an_element() -> None:
    text = re.sub(r"`[^`]*`|<!--.*?-->", "", reference.settings_page())

    assert "<" not in text
    assert "&lt;public URL>/account/sso" in text


def test_the_roles_that_may_be_asked_for_a_second_factor_are_the_roles_of_people() -> None:
    assert VARIABLES.rows["TOOLHUB_REQUIRE_MFA"].allowed.startswith(f"one or more of {', '.join(Role)},")


def test_a_name_that_is_no_setting_is_said_with_the_one_that_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_settings(None) == []

    monkeypatch.setenv("TOOLHUB_WORKER_CONCURENCY", "8")
    monkeypatch.setenv("TOOLHUB_COLOUR", "red")

    assert [found.msg for found in check_settings(None)] == [
        "There is no setting TOOLHUB_COLOUR, so it has no effect. docs/reference/settings.md names those that there are.",
        "There is no setting TOOLHUB_WORKER_CONCURENCY, so it has no effect. Did you mean TOOLHUB_WORKER_CONCURRENCY?",
    ]
    assert "Did you mean TOOLHUB_WORKER_CONCURRENCY?" in doctor.environment()

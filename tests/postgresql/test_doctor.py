"""Doctor: what does `doctor` say of a hub that is not set up, of a role's host, and of room for connections?"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.e2e.processes import ROOT, clean_environment, python
from tests.e2e.services import own_database
from toolhub.management.commands import doctor

if TYPE_CHECKING:
    from pathlib import Path


def asked(url: str, data: Path) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """What `doctor` finds wrong at a web host of this database, and all that it said."""
    redis = os.environ["TOOLHUB_TEST_REDIS_URL"]
    env = clean_environment(TOOLHUB_DATABASE_URL=url, TOOLHUB_REDIS_URL=redis, TOOLHUB_DATA_DIR=str(data))
    command = python("manage.py", "doctor", "--role", "web")
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("WRONG")], done


@pytest.mark.req("TOOLS-18")
def test_before_init_it_says_that_nothing_is_set_up_and_nothing_of_sql(tmp_path: Path) -> None:
    with own_database() as url:
        wrong, done = asked(url, tmp_path)

    assert [line.split()[1] for line in wrong] == ["database"]
    assert "not set up yet" in wrong[0]
    assert "relation" not in done.stdout


@pytest.mark.req("TOOLS-18")
def test_before_init_has_made_the_role_it_says_so_once(tmp_path: Path) -> None:
    with own_database() as url:
        server = urlsplit(url)
        nobody = server._replace(netloc=f"role_that_is_absent:x@{server.hostname}:{server.port}")
        wrong, done = asked(urlunsplit(nobody), tmp_path)

    assert [line.split()[1] for line in wrong] == ["database", "keys"]
    assert "does not know the role role_that_is_absent or the database, the hub is not set up yet" in wrong[0]
    assert all("manage.py init" in line for line in wrong)
    assert (done.stdout + done.stderr).count("FATAL") == 1


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize(
    ("role", "not_asked"),
    [("web", {"sandbox", "images"}), ("keeper", {"sandbox", "images", "tools"}), ("worker", set())],
)
def test_a_role_is_asked_only_what_its_host_must_have(role: str, not_asked: set[str]) -> None:
    assert {check.__name__ for check in doctor.NOT_OF[role]} >= not_asked
    assert {"database", "keys", "broker"} <= {check.__name__ for check in doctor.CHECKS} - not_asked


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db
@pytest.mark.parametrize(("most", "is_enough"), [(1, True), (10_000, False)])
def test_more_connections_than_the_server_takes_are_noted(most: int, is_enough: bool, settings: Any) -> None:
    settings.TOOLHUB_DATABASE_POOL = most

    said = doctor.pool()

    assert isinstance(said, doctor.Remark) is not is_enough
    assert f"at most {most} (TOOLHUB_DATABASE_POOL)" in said

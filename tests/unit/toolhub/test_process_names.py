"""Process names: does a process say what it is, however it is started?"""

from __future__ import annotations

import pytest
import yaml
from django.conf import settings

from kernel.variables import KEEPER, UPKEEP, WORKER
from toolhub.process_names import MOST_OF_HOST, OTHER, ProcessName, find_role, parse_process_name

COMPOSE = {"worker": WORKER, "upkeep": UPKEEP, "keeper": KEEPER, "web": OTHER, "migrate": OTHER}


@pytest.mark.parametrize("service", COMPOSE)
def test_services_of_compose_say_what_they_are(service: str) -> None:
    services = yaml.safe_load((settings.BASE_DIR / "docker-compose.yml").read_text())["services"]
    words = [each for each in services[service]["command"] if each != "python"]

    assert find_role(words) == COMPOSE[service]


@pytest.mark.parametrize(
    ("words", "role"),
    [
        (["/srv/toolhub/.venv/bin/celery", "-A", "toolhub", "worker", "--loglevel", "INFO"], WORKER),
        (["/venv/lib/celery/__main__.py", "-A", "toolhub", "worker"], WORKER),
        (["/srv/toolhub/.venv/bin/celery", "-A", "toolhub", "inspect", "ping"], OTHER),
        (["manage.py", "keep", "--once"], KEEPER),
        (["/home/celery/toolhub/manage.py", "keep"], KEEPER),
        (["manage.py"], OTHER),
        (["-c"], OTHER),
    ],
)
def test_what_is_typed_says_what_the_process_is(words: list[str], role: str) -> None:
    assert find_role(words) == role


def test_a_name_is_read_as_it_was_written_and_one_of_before_says_no_role() -> None:
    longest = ProcessName("h" * MOST_OF_HOST, 4_194_304, UPKEEP)  # the highest number of a process

    assert parse_process_name(str(longest)) == longest
    assert len(str(longest)) <= 63
    assert parse_process_name("toolhub db-1 17") == ProcessName("db-1", 17, "")
    assert parse_process_name("psql") is None

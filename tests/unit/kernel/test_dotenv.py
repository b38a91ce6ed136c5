"""Dotenv: do all who start something here have the settings of the same file?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.dotenv import load_dotenv, read_dotenv
from tests.e2e.processes import clean_environment

ROOT = Path(__file__).resolve().parents[3]
MISTYPED = "TOOLHUB_SANDBOX_NETWORKS"
SAYS = (
    "TOOLHUB_SANDBOX_NETWORKS must be networks separated by commas, as 10.20.0.0/16, not '10.20.0.0/33' "
    "('10.20.0.0/33' does not appear to be an IPv4 or IPv6 network)."
)
STARTED = {
    "a command": ["manage.py", "doctor"],
    "the hub of `make run`": ["scripts/start_hub.py"],
    "a worker": ["-m", "celery", "-A", "toolhub", "worker"],
    "a web process": ["-c", "import toolhub.asgi"],
}


@pytest.fixture
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for somebody who set nothing."""
    monkeypatch.delenv("TOOLHUB_ENV_FILE", raising=False)


@pytest.mark.usefixtures("at_home")
def test_settings_come_from_the_env_file_without_its_comments_and_quotes(tmp_path: Path) -> None:
    assert read_dotenv(tmp_path) == {}

    (tmp_path / ".env").write_text("# TOOLHUB_A=1\n\n TOOLHUB_B = x=y \nTOOLHUB_C='quoted'\nnonsense\n")

    assert read_dotenv(tmp_path) == {"TOOLHUB_B": "x=y", "TOOLHUB_C": "quoted"}


@pytest.mark.usefixtures("at_home")
def test_what_the_environment_says_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("TOOLHUB_TEST_A=file\nTOOLHUB_TEST_B=file\n")
    monkeypatch.setenv("TOOLHUB_TEST_A", "")
    monkeypatch.setenv("TOOLHUB_TEST_B", "")
    monkeypatch.delenv("TOOLHUB_TEST_B")

    load_dotenv(tmp_path)

    assert (os.environ["TOOLHUB_TEST_A"], os.environ["TOOLHUB_TEST_B"]) == ("", "file")


def test_another_file_is_read_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("TOOLHUB_A=1\n")
    (tmp_path / "other").write_text("TOOLHUB_A=2\n")

    monkeypatch.setenv("TOOLHUB_ENV_FILE", str(tmp_path / "other"))
    assert read_dotenv(tmp_path) == {"TOOLHUB_A": "2"}
    monkeypatch.setenv("TOOLHUB_ENV_FILE", "")
    assert read_dotenv(tmp_path) == {}


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLHUB_ENV_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="nowhere cannot be read: No such file"):
        read_dotenv(tmp_path)

    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    monkeypatch.setenv("TOOLHUB_ENV_FILE", str(tmp_path / "binary"))
    with pytest.raises(ValueError, match="binary cannot be read: it is not UTF-8"):
        read_dotenv(tmp_path)


def started(what: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    env = clean_environment(TOOLHUB_DATA_DIR=str(folder), **settings)
    return subprocess.run(
        [sys.executable, *STARTED[what]], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("what", STARTED)
def test_whatever_is_started_reads_the_file_and_says_in_a_sentence_what_is_mistyped_there(
    what: str, tmp_path: Path
) -> None:
    (tmp_path / "settings").write_text(f"{MISTYPED}=10.20.0.0/33\n")

    done = started(what, tmp_path / "data", TOOLHUB_ENV_FILE=str(tmp_path / "settings"))

    assert done.returncode == 1
    assert SAYS in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr

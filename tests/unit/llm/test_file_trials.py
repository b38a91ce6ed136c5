"""File trials: is a model's file tried where it can harm nobody, and is what came of it said?"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from llm.providers import file_trials
from llm.providers.file_trials import FileFault, find_fault
from llm.providers.llama_servers import ServerPlan
from tests.support.llama_library import install_library


def plan(pooling: str) -> ServerPlan:
    return ServerPlan("/nowhere/mine.gguf", pooling, 64)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("pooling", ["none", "mean", "rank"])
def test_a_file_that_answers_as_it_is_used_has_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pooling: str
) -> None:
    install_library(tmp_path, monkeypatch)
    assert find_fault(plan(pooling)) is None

    install_library(tmp_path, monkeypatch, before="return json.dumps({'error': {}})")
    assert find_fault(plan(pooling)) == FileFault(file_trials.UNASKED)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("begin", "ending", "may_pass"),
    [
        ("raise RuntimeError('canary')", file_trials.UNLOADED, False),
        ("os.abort()", file_trials.UNLOADED, False),
        ("os._exit(0)", file_trials.UNLOADED, False),
        ("os.write(1, b'\\xff' * 100_000); os.write(2, b'\\xff' * 100_000); os.abort()", file_trials.UNLOADED, False),
        ("os.kill(os.getpid(), signal.SIGKILL)", file_trials.MEMORY, True),
        ("signal.pause()", file_trials.DISK, True),
        ("os.kill(os.getpid(), signal.SIGALRM)", file_trials.DISK, True),
    ],
)
def test_what_ends_the_trial_ends_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str, ending: str, may_pass: bool
) -> None:
    if "pause" in begin:
        monkeypatch.setattr(file_trials, "PATIENCE_S", 1)
    install_library(tmp_path, monkeypatch, begin=begin)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert find_fault(plan("mean")) == FileFault(ending, may_pass=may_pass)
    assert not list(tmp_path.glob("toolhub-*"))


@pytest.mark.req("LLM-9")
def test_the_trial_knows_nothing_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLHUB_DATABASE_URL", "canary")
    install_library(tmp_path, monkeypatch, begin="assert 'canary' not in os.environ.values()")

    assert find_fault(plan("mean")) is None


@pytest.mark.req("LLM-9")
def test_what_the_library_writes_is_not_kept_and_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_library(tmp_path, monkeypatch, begin="os.write(1, b'\\xff' * 100_000); os.write(2, b'\\xff' * 100_000)")
    read: list[str] = []
    read_end = file_trials._read_end

    def keep(process: subprocess.Popen[bytes]) -> str:
        read.append(read_end(process))
        return read[0]

    monkeypatch.setattr(file_trials, "_read_end", keep)

    assert find_fault(plan("mean")) is None
    assert len(read[0]) <= file_trials.KEPT


@pytest.mark.req("LLM-9")
def test_a_trial_that_nobody_waits_for_any_more_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_library(tmp_path, monkeypatch, begin="assert signal.alarm(0) > 0")

    assert find_fault(plan("mean")) is None


# A hub whose main thread ends while a thread of it waits for a trial.
ENDS_AMID_A_TRIAL = """
import json, os, sys
from concurrent.futures import ThreadPoolExecutor
from llm.providers import file_trials
from llm.providers.llama_servers import ServerPlan

sys.path.insert(0, sys.argv[1])
plan, pipe = ServerPlan("/nowhere", "mean", 64), os.path.join(sys.argv[1], "pipe")
os.mkfifo(pipe)

def run():
    print(file_trials.find_fault(plan).may_pass, flush=True)
    print(file_trials.find_fault(plan).ending, flush=True)

ThreadPoolExecutor().submit(run)
print(open(pipe).read(), flush=True)
"""


@pytest.mark.req("LLM-9")
def test_where_the_hub_ends_its_trials_end_and_none_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = str(tmp_path / "pipe")
    install_library(tmp_path, monkeypatch, begin=f"open({pipe!r}, 'w').write('loading'); signal.pause()")

    done = subprocess.run(
        [sys.executable, "-c", ENDS_AMID_A_TRIAL, str(tmp_path)],
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    loading, may_pass, second = done.stdout.splitlines()
    assert (loading, may_pass) == ("loading", "True")
    assert "could not be tried" in second


@pytest.mark.req("LLM-9")
def test_where_no_process_can_be_started_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    fault = find_fault(plan("mean"))

    assert fault is not None
    assert "could not be tried" in fault.ending
    assert fault.may_pass

"""File trials: is a model's file tried where it can harm nobody, and is what came of it said?"""

from __future__ import annotations

import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from llm.providers import file_trials
from llm.providers.file_trials import find_fault
from llm.providers.llama_servers import ServerPlan
from tests.support.llama_library import install_library

if TYPE_CHECKING:
    from pathlib import Path


def plan(pooling: str) -> ServerPlan:
    return ServerPlan("/nowhere/mine.gguf", pooling, 64)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("pooling", ["none", "mean", "rank"])
def test_a_file_that_answers_as_it_is_used_has_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pooling: str
) -> None:
    install_library(tmp_path, monkeypatch)
    assert find_fault(plan(pooling)) == ""

    install_library(tmp_path, monkeypatch, before="return json.dumps({'error': {}})")
    assert "could not be asked" in find_fault(plan(pooling))


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("begin", "sentence"),
    [
        ("raise RuntimeError('canary')", "cannot be loaded"),
        ("os.abort()", "cannot be loaded"),
        ("os._exit(0)", "cannot be loaded"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "needs more memory than the machine has"),
        ("signal.pause()", "was not loaded within"),
    ],
)
def test_what_ends_the_trial_ends_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str, sentence: str
) -> None:
    if "pause" in begin:
        monkeypatch.setattr(file_trials, "PATIENCE_S", 1)
    install_library(tmp_path, monkeypatch, begin=begin)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    fault = find_fault(plan("mean"))

    assert not list(tmp_path.glob("toolhub-*"))

    assert sentence in fault
    assert "canary" not in fault


@pytest.mark.req("LLM-9")
def test_the_trial_knows_nothing_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLHUB_DATABASE_URL", "canary")
    install_library(tmp_path, monkeypatch, begin="assert 'canary' not in os.environ.values()")

    assert find_fault(plan("mean")) == ""


@pytest.mark.req("LLM-9")
def test_where_no_process_can_be_started_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    assert "could not be tried" in find_fault(plan("mean"))

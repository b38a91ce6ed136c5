"""Is a model's file tried where it can harm nobody, and is what came of it said?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from llm.providers import file_trials
from llm.providers.file_trials import find_fault
from llm.providers.llama_servers import ServerPlan

if TYPE_CHECKING:
    from pathlib import Path

# Stands in the place of the library, in the process of the trial.
LIBRARY = """
import json, os, signal
from types import SimpleNamespace

class CommonParams(SimpleNamespace):
    def __init__(self):
        super().__init__(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())

class llama_pooling_type:
    LLAMA_POOLING_TYPE_MEAN, LLAMA_POOLING_TYPE_RANK = 1, 4

class Server:
    def __init__(self, parameters):
        {begin}

    def handle_metrics(self):
        pass

    def handle_chat_completions(self, body, take):
        take(json.dumps({answer}))

    def handle_embeddings(self, body):
        return json.dumps({answer})

    handle_rerank = handle_embeddings
"""


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *, begin: str = "pass", answer: str = "{}") -> None:
    (folder / "xllamacpp.py").write_text(LIBRARY.replace("{begin}", begin).replace("{answer}", answer))
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])


def plan(pooling: str) -> ServerPlan:
    return ServerPlan("/nowhere/mine.gguf", pooling, 64)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(("pooling", "answer"), [("none", "choices"), ("mean", "data"), ("rank", "results")])
def test_a_file_that_answers_as_it_is_used_has_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pooling: str, answer: str
) -> None:
    stand_in(tmp_path, monkeypatch, answer=f'{{"{answer}": []}}')
    assert find_fault(plan(pooling)) == ""

    stand_in(tmp_path, monkeypatch, answer='{"error": {}}')
    assert "could not be asked" in find_fault(plan(pooling))


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("begin", "sentence"),
    [
        ("raise RuntimeError('canary')", "cannot be loaded"),
        ("os.abort()", "cannot be loaded"),
        ("os._exit(0)", "cannot be loaded"),
        ("print('canary')", "could not be asked"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "needs more memory than the machine has"),
        ("signal.pause()", "was not loaded within"),
    ],
)
def test_what_ends_the_trial_ends_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str, sentence: str
) -> None:
    if "pause" in begin:
        monkeypatch.setattr(file_trials, "PATIENCE_S", 1)
    stand_in(tmp_path, monkeypatch, begin=begin)

    fault = find_fault(plan("mean"))

    assert sentence in fault
    assert "canary" not in fault


@pytest.mark.req("LLM-9")
def test_the_trial_knows_nothing_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLHUB_DATABASE_URL", "canary")
    stand_in(tmp_path, monkeypatch, begin="assert 'canary' not in os.environ.values()", answer='{"data": []}')

    assert find_fault(plan("mean")) == ""


@pytest.mark.req("LLM-9")
def test_where_no_process_can_be_started_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    assert "could not be tried" in find_fault(plan("mean"))

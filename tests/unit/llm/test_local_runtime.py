"""Local runtime: is a model's file tried as often as it has to be, and is what was tried what is loaded?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from llm.problems import ModelFileUnusable, ProviderUnavailable
from llm.provider_factory import ProviderConfig
from llm.providers import local_runtime
from llm.providers.file_trials import FileFault
from llm.providers.llama_servers import ServerPlan
from llm.providers.local import LocalProvider
from llm.providers.local_runtime import PASSING_S, LlamaRuntime, RuntimeShelf
from llm.providers.model_files import inspect_file
from tests.support.gguf_files import write_encoder, write_gguf
from tests.support.llama_library import install_library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


BROKEN = FileFault("is broken: mend it")
SHORT = FileFault("needs more memory: wait", may_pass=True)


@dataclass
class Trials:
    """In the place of those in a process of their own. ``meanwhile``: what happens during each."""

    faults: list[FileFault | None] = field(default_factory=list)
    plans: list[ServerPlan] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None

    def find_fault(self, plan: ServerPlan) -> FileFault | None:
        self.plans.append(plan)
        self.meanwhile()
        return self.faults.pop(0)


@pytest.fixture
def trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    (library := tmp_path / "library").mkdir()
    install_library(library, monkeypatch)
    trials = Trials()
    monkeypatch.setattr(local_runtime, "find_fault", trials.find_fault)
    return trials


def build_runtime(path: Path, clock: Callable[[], float] = lambda: 0.0) -> LlamaRuntime:
    return LlamaRuntime(ServerPlan(str(path), "mean", 64), tried=inspect_file("mine", path), clock=clock)


def ask(runtime: LlamaRuntime) -> Any:
    return anyio.run(runtime.compute_vectors, {"input": ["four"]})["data"][0]["embedding"]


def replace(path: Path, seed: int = 2) -> None:
    write_encoder(path.with_suffix(".new"), seed=seed).rename(path)


@pytest.mark.req("LLM-9")
def test_a_file_that_failed_its_trial_is_tried_again_only_when_it_was_replaced(tmp_path: Path, trials: Trials) -> None:
    path = write_encoder(tmp_path / "mine.gguf")
    provider = LocalProvider(ProviderConfig("local", options={"files": {"mine": str(path)}}))
    embedder: Any = provider.get_embed_model("mine")
    trials.faults = [BROKEN]

    for _ in range(3):
        with pytest.raises(ModelFileUnusable, match=r"mine\.gguf is broken: mend it\."):
            ask(embedder._runtime)
        embedder = provider.get_embed_model("mine")
    assert len(trials.plans) == 1

    replace(path)
    trials.faults = [None]
    embedder = provider.get_embed_model("mine")
    assert ask(embedder._runtime) == ask(embedder._runtime) == [4.0, 1.0]
    assert len(trials.plans) == 2


@pytest.mark.req("LLM-9")
def test_a_fault_of_the_machine_is_kept_for_a_minute(tmp_path: Path, trials: Trials) -> None:
    clock: list[float] = [0.0]
    runtime = build_runtime(write_encoder(tmp_path / "mine.gguf"), lambda: clock[0])
    trials.faults = [SHORT, None]

    for seconds in (0.0, PASSING_S - 1.0):
        clock[:] = [seconds]
        with pytest.raises(ModelFileUnusable, match="needs more memory"):
            ask(runtime)
    assert len(trials.plans) == 1

    clock[:] = [PASSING_S]
    assert ask(runtime) == [4.0, 1.0]
    assert len(trials.plans) == 2


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("found", [None, BROKEN])
def test_a_file_that_is_replaced_during_its_trial_is_not_loaded(
    tmp_path: Path, trials: Trials, found: FileFault | None
) -> None:
    path = write_encoder(tmp_path / "mine.gguf")
    runtime = build_runtime(path)
    trials.faults, trials.meanwhile = [found], lambda: replace(path)

    with pytest.raises(ModelFileUnusable, match="was replaced while it was asked: ask again"):
        ask(runtime)

    trials.faults, trials.meanwhile = [None], lambda: None
    assert ask(build_runtime(path)) == [4.0, 1.0]


@pytest.mark.req("LLM-9")
def test_of_a_model_in_parts_each_part_counts(tmp_path: Path, trials: Trials) -> None:
    first, second = (tmp_path / f"big-0000{part}-of-00002.gguf" for part in (1, 2))
    said = {"general.architecture": "bert", "bert.pooling_type": 1, "split.count": 2}
    for part in (first, second):
        write_gguf(part, said, [("token_embd.weight", (4,), bytes(16))])
    provider = LocalProvider(ProviderConfig("local", options={"files": {"big": str(first)}}))
    before: Any = provider.get_embed_model("big")
    shelf, plan, file = RuntimeShelf(), ServerPlan(str(first), "mean", 64), inspect_file("big", first)
    held = shelf.take(file, plan)
    trials.faults, trials.meanwhile = [None], lambda: replace(second)

    with pytest.raises(ModelFileUnusable, match="was replaced"):
        ask(before._runtime)

    after: Any = provider.get_embed_model("big")
    assert after._runtime is not before._runtime
    assert shelf.take(inspect_file("big", first), plan) is not held


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("place", "said", "logged"),
    [
        ("begin", "cannot be loaded", "mine.gguf cannot be loaded"),
        ("before", "could not answer", "could not answer: ValueError"),
    ],
)
def test_what_the_library_raises_is_said_and_its_place_logged(
    place: str,
    said: str,
    logged: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (library := tmp_path / "library").mkdir()
    caplog.set_level("WARNING", "toolhub.models")
    install_library(library, monkeypatch, **{place: 'raise ValueError("a prompt")'})
    runtime = LlamaRuntime(ServerPlan(str(write_encoder(tmp_path / "mine.gguf")), "mean", 64))

    with pytest.raises(ProviderUnavailable, match=said):
        ask(runtime)

    assert logged in caplog.text
    assert ("a prompt" in caplog.text) is (place == "begin")  # what is asked is in no log

"""File models asked: are models of one's own files asked by every door as other models are, and is it said what a file cannot do?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.models import Invocation
from registry.model_providers.connected_models import connect_model
from registry.model_providers.services import connect_provider
from tests.support.calls import PAIR, kinds_of
from tests.support.gguf_files import RANK, write_encoder, write_gguf
from tests.support.llama_library import install_library
from tests.support.model_calls import ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
TALK, VECTORS, SCORES, BROKEN = (f"model.mine.{alias}" for alias in ("talk", "vectors", "scores", "broken"))
TEXTS = ["a text of some length", "short", "of middle length"]


@pytest.fixture(autouse=True)
def _models(
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operator: Person,
    grant: Callable[..., Any],
) -> None:
    install_library(tmp_path, monkeypatch)
    settings.TOOLHUB_LOCAL_MODELS = folder = tmp_path / "models"
    folder.mkdir()
    write_gguf(folder / "talk.gguf", {"general.architecture": "llama"}, [("output.weight", (4,), bytes(16))])
    write_encoder(folder / "vectors.gguf")
    write_encoder(folder / "scores.gguf", pooling=RANK, labels=1)
    (folder / "broken.gguf").write_bytes((folder / "vectors.gguf").read_bytes()[:5000])
    connect_provider(name="mine", kind="local", reason="for a test", by=operator.by)
    for alias, operation in {"talk": "chat", "vectors": "embed", "scores": "rerank", "broken": "embed"}.items():
        connect(operator, alias, operation)
    grant("model.mine.*")


def connect(operator: Person, model: str, operation: str, alias: str = "") -> None:
    connect_model(
        provider="mine",
        alias=alias or model,
        model=model,
        operation=operation,
        unpriced="count",
        reason="for a test",
        by=operator.by,
    )


@pytest.mark.req("LLM-6", "LLM-10")
def test_a_file_makes_vectors_by_both_doors(caller: Caller) -> None:
    ours = ask(caller, {"items": TEXTS, "normalize": False}, model=VECTORS, operation="embed").json()
    theirs = caller.ask("/v1/embeddings", {"model": VECTORS, "input": TEXTS}).json()

    assert ours["data"]["vectors"] == [[len(text), 1.0] for text in TEXTS]
    assert (ours["data"]["dim"], ours["data"]["model"]) == (2, "vectors")
    assert ours["data"]["usage"]["input_tokens"] == theirs["usage"]["prompt_tokens"] == 3
    assert [each["index"] for each in theirs["data"]] == [0, 1, 2]
    assert [kinds_of(each) for each in Invocation.objects.all()] == [PAIR, PAIR]


@pytest.mark.req("LLM-6", "LLM-10")
def test_a_file_orders_texts_by_both_doors(caller: Caller) -> None:
    ours = ask(caller, {"query": "q", "candidates": TEXTS}, model=SCORES, operation="rerank").json()
    theirs = caller.ask("/v1/rerank", {"model": SCORES, "query": "q", "documents": TEXTS}).json()

    assert ours["data"]["ordering"] == [1, 2, 0]
    assert ours["data"]["encoder"] == "cross"
    assert [each["index"] for each in theirs["results"]] == [1, 2, 0]
    assert theirs["results"][0]["relevance_score"] == pytest.approx(1 / 5)
    assert [kinds_of(each) for each in Invocation.objects.all()] == [PAIR, PAIR]


@pytest.mark.req("LLM-10")
def test_a_file_goes_on_with_a_conversation(caller: Caller) -> None:
    body = {"model": TALK, "messages": [{"role": "user", "content": "The capital of France?"}], "max_tokens": 9}

    answer = caller.ask("/v1/chat/completions", body).json()

    assert answer["choices"][0]["message"]["content"] == "Paris."
    assert answer["usage"]["total_tokens"] == 11


@pytest.mark.req("LLM-10")
def test_what_a_file_cannot_do_and_what_is_wrong_with_it_end_the_call_with_a_sentence(
    caller: Caller, operator: Person
) -> None:
    connect(operator, "talk", "embed", alias="wrong")

    wrong = ask(caller, {"items": ["x"]}, model="model.mine.wrong", operation="embed").json()["error"]
    broken = caller.ask("/v1/embeddings", {"model": BROKEN, "input": "x"})

    assert (wrong["reason"], wrong["retryable"]) == ("LLM.UNSUPPORTED", "no")
    assert wrong["message"].startswith("The model's file talk.gguf does not do this (embed): it goes on")
    assert "operation: chat" in wrong["remedy"]
    assert (broken.status_code, broken.headers["X-Hub-Reason"]) == (502, "LLM.FILE_UNUSABLE")
    assert "broken.gguf ends too early: copy or download it again." in broken.json()["error"]["message"]
    assert [kinds_of(each) for each in Invocation.objects.all()] == [PAIR, PAIR]

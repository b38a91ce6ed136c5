"""File weights: do model files of one's own chat, make vectors and order texts in this process, and does none of them end it?"""

from __future__ import annotations

import gc
import math
import shutil
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from llm.messages import Text, UserMessage
from llm.problems import ContextOverflow, ModelFileUnusable, ParameterUnsupported
from llm.provider_factory import ProviderConfig
from llm.providers.local import LocalProvider, find_weights
from llm.requests import ChatRequest, EmbedRequest, RerankRequest
from scripts.provision import peers
from tests.support.gguf_files import CLS, RANK, WIDTH, write_encoder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.long

TEXTS = ("paris is the capital of france", "banana", "berlin is the capital of germany", "the banana is yellow", "what")
QUERY = "what is the capital of france?"


@pytest.fixture(scope="module")
def _packages() -> Iterator[None]:
    folder = str(peers.ensure_local_models())
    sys.path.append(folder)
    yield
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def folder(_packages: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    write_encoder(made / "vectors.gguf")
    write_encoder(made / "scores.gguf", pooling=RANK, labels=1)
    write_encoder(made / "unsaid.gguf", pooling=None)
    (made / "talk.gguf").symlink_to(find_weights())
    return made


def connect(folder: Path, **options: Any) -> LocalProvider:
    files = {each.stem: str(each) for each in folder.glob("*.gguf")}
    return LocalProvider(ProviderConfig("local", options={"files": files, **options}))


@pytest.fixture(scope="module")
def provider(folder: Path) -> LocalProvider:
    return connect(folder)


def asking(**given: Any) -> ChatRequest:
    words = UserMessage((Text("What is the capital of France?"),))
    return ChatRequest(model="mine:talk", messages=(words,), temperature=0.0, seed=1, max_tokens=20, **given)


def embedding(*items: str, **given: Any) -> EmbedRequest:
    return EmbedRequest(model="mine:vectors", items=items, **given)


def ranking(*texts: str, model: str = "scores", query: str = QUERY) -> RerankRequest:
    return RerankRequest(model=f"mine:{model}", query=query, candidates=texts)


@pytest.mark.req("LLM-1")
def test_a_file_of_ones_own_goes_on_with_a_conversation(provider: LocalProvider) -> None:
    answer = anyio.run(provider.get_chat_model("talk").generate, asking())

    assert "Paris" in answer.text
    assert answer.model == "talk"


@pytest.mark.req("LLM-6")
def test_a_hundred_texts_have_their_vectors_in_their_order_with_what_they_took(provider: LocalProvider) -> None:
    items = tuple(f"text {n} is {TEXTS[n % 5]}" for n in range(100))
    embedder = provider.get_embed_model("vectors")

    async def main() -> None:
        answer = await embedder.embed(embedding(*items))
        assert (len(answer.vectors), answer.dim, answer.model) == (100, WIDTH, "vectors")
        counts = 0
        for place, item in enumerate(items):
            alone = await embedder.embed(embedding(item))
            assert alone.vectors[0] == pytest.approx(answer.vectors[place], abs=1e-5)
            assert alone.usage is not None
            counts += alone.usage.input_tokens
        assert answer.usage is not None
        assert (answer.usage.input_tokens, answer.usage.estimated) == (counts, False)

    anyio.run(main)


@pytest.mark.req("LLM-6")
def test_vectors_are_of_length_one_where_that_is_asked_for_and_as_they_come_otherwise(provider: LocalProvider) -> None:
    embedder = provider.get_embed_model("vectors")

    [scaled] = anyio.run(embedder.embed, embedding("banana")).vectors
    [raw] = anyio.run(embedder.embed, embedding("banana", normalize=False)).vectors

    assert math.hypot(*scaled) == pytest.approx(1, abs=1e-5)
    assert math.hypot(*raw) > 1.5
    assert [each * math.hypot(*raw) for each in scaled] == pytest.approx(raw, abs=1e-4)
    cut, whole = anyio.run(embedder.embed, embedding("one", "one\0two")).vectors
    assert cut != whole


@pytest.mark.req("LLM-6")
def test_a_file_with_a_head_for_it_scores_each_text_with_the_query(provider: LocalProvider) -> None:
    ranker = provider.get_rerank_model("scores")
    many = TEXTS * 8

    answer = anyio.run(ranker.rerank, ranking(*many))
    other = anyio.run(ranker.rerank, ranking(*TEXTS, query="yellow banana"))

    assert (len(answer.scores), answer.encoder, answer.model) == (40, "cross", "scores")
    for place, text in enumerate(TEXTS):
        alone = anyio.run(ranker.rerank, ranking(text))
        assert [alone.scores[0]] * 8 == pytest.approx(list(answer.scores[place::5]), abs=1e-5)
    assert len({round(score, 4) for score in answer.scores}) == len(TEXTS)
    assert answer.scores[answer.ordering[0]] == max(answer.scores)
    assert other.scores != pytest.approx(answer.scores[:5], abs=1e-3)
    assert answer.usage is not None
    assert answer.usage.input_tokens > 40 * 10


@pytest.mark.req("LLM-6")
def test_a_file_of_vectors_orders_texts_by_them_and_says_so(provider: LocalProvider) -> None:
    answer = anyio.run(provider.get_rerank_model("vectors").rerank, ranking(*TEXTS, query=TEXTS[3], model="vectors"))

    assert (answer.ordering[0], answer.encoder) == (3, "bi")
    assert answer.scores[3] == pytest.approx(1, abs=1e-5)


@pytest.mark.req("LLM-9")
def test_a_text_that_is_too_long_is_refused_and_the_next_one_answered(provider: LocalProvider) -> None:
    embedder, ranker = provider.get_embed_model("vectors"), provider.get_rerank_model("scores")

    with pytest.raises(ContextOverflow, match="64"):
        anyio.run(embedder.embed, embedding("paris", "paris " * 70))
    with pytest.raises(ContextOverflow, match="64"):
        anyio.run(ranker.rerank, ranking("paris", "paris " * 70))
    assert anyio.run(embedder.embed, embedding("paris " * 60)).dim == WIDTH


@pytest.mark.req("LLM-6")
def test_what_a_file_does_not_say_the_provider_can(folder: Path, provider: LocalProvider) -> None:
    with pytest.raises(ParameterUnsupported, match="unsaid"):
        provider.get_embed_model("unsaid")

    said = {way: connect(folder, pooling={"unsaid": way}).get_embed_model("unsaid") for way in ("mean", "cls")}
    mean, cls = (anyio.run(each.embed, embedding("banana")).vectors[0] for each in said.values())

    assert mean != pytest.approx(cls, abs=1e-2)
    with pytest.raises(ParameterUnsupported, match="it goes on with a conversation"):
        provider.get_embed_model("talk")


@pytest.mark.req("LLM-10")
@pytest.mark.usefixtures("_packages")
def test_a_file_is_in_memory_once_until_nobody_holds_it(tmp_path: Path) -> None:
    write_encoder(tmp_path / "scores.gguf", pooling=RANK, labels=1)
    write_encoder(tmp_path / "vectors.gguf")
    first, second = connect(tmp_path), connect(tmp_path)
    one, two = first.get_rerank_model("scores"), second.get_rerank_model("scores")
    runtime = one._runtime  # type: ignore[attr-defined]
    assert runtime is two._runtime  # type: ignore[attr-defined]
    assert runtime is not first.get_embed_model("vectors")._runtime  # type: ignore[attr-defined]
    anyio.run(one.rerank, ranking("banana"))
    server = runtime._server
    del runtime

    async def close(provider: LocalProvider) -> None:
        await provider.aclose()

    for each in (first, second):
        anyio.run(close, each)
    del one
    gc.collect()
    assert anyio.run(two.rerank, ranking("banana")).scores  # a call that began before answers
    assert two._runtime._server is server  # type: ignore[attr-defined]
    two._runtime._thread.submit(int).result()  # type: ignore[attr-defined]  # the thread has let go of the call before
    del two
    gc.collect()

    assert sys.getrefcount(server) == 2  # this name, and the argument


@pytest.mark.req("LLM-10")
@pytest.mark.usefixtures("_packages")
def test_a_file_that_was_replaced_is_loaded_anew(tmp_path: Path) -> None:
    write_encoder(tmp_path / "mine.gguf")
    provider = connect(tmp_path)
    before = anyio.run(provider.get_embed_model("mine").embed, embedding("banana")).vectors

    write_encoder(tmp_path / "other", seed=2).rename(tmp_path / "mine.gguf")
    after = anyio.run(provider.get_embed_model("mine").embed, embedding("banana")).vectors

    assert before[0] != pytest.approx(after[0], abs=1e-2)


def break_vocabulary(file: Path) -> None:
    """The runtime ends its process where two tokens are the same."""
    data = write_encoder(file).read_bytes()
    file.write_bytes(data.replace("\u2581banana".encode(), "\u2581berlin".encode()))


def cut_end(file: Path) -> None:
    data = write_encoder(file).read_bytes()
    file.write_bytes(data[:-64])


def have_no_known_architecture(file: Path) -> None:
    said: dict[str, Any] = {"general.architecture": "novel", "novel.pooling_type": CLS}
    write_encoder(file, pooling=CLS, **said)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("break_file", [break_vocabulary, cut_end, have_no_known_architecture])
def test_a_file_that_the_runtime_cannot_take_is_a_sentence_and_this_process_goes_on(
    _packages: None, tmp_path: Path, break_file: Any
) -> None:
    break_file(tmp_path / "broken.gguf")
    bad = connect(tmp_path)

    with pytest.raises(ModelFileUnusable, match=r"broken\.gguf .+: .+\.") as refused:
        anyio.run(bad.get_embed_model("broken").embed, embedding("banana"))

    assert str(tmp_path) not in str(refused.value)
    # Mended, it answers without a start of the hub.
    shutil.copy(write_encoder(tmp_path / "whole", pooling=RANK, labels=1), tmp_path / "broken.gguf")
    assert anyio.run(bad.get_rerank_model("broken").rerank, ranking("banana")).scores

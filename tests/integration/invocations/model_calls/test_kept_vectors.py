"""Kept vectors: are very many vectors given to whoever asked for them, and only their digest kept?"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from evidence.models import Snapshot
from invocations.model_calls import kept_vectors
from tests.support.calls import row_of
from tests.support.connected_models import connect_scripted_model
from tests.support.model_calls import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
EMBEDDER = "model.script.vectors"


@pytest.fixture
def embedder(operator: Person, grant: Callable[..., Any]) -> None:
    grant("model.*")
    connect_scripted_model(operator.by, "vectors", operation="embed", unpriced="count")


def embed(caller: Caller, items: int, **more: Any) -> Any:
    return ask(caller, {"items": ["x"] * items, "normalize": False}, model=EMBEDDER, operation="embed", **more)


def post_embeddings(caller: Caller, body: Any, headers: dict[str, str]) -> Any:
    return Client().post("/v1/embeddings", body, content_type="application/json", headers=caller.headers() | headers)


@pytest.mark.req("LLM-6", "LLM-11")
@pytest.mark.usefixtures("embedder")
def test_the_first_answer_has_all_vectors_and_what_is_kept_has_their_digest(
    caller: Caller, bench: ProviderBench
) -> None:
    bench.vectors = tuple((float(row),) * 1024 for row in range(65))

    first = embed(caller, 65, idempotency_key="k-1").json()
    again = embed(caller, 65, idempotency_key="k-1").json()

    numbers = [float(row) for row in range(65) for _ in range(1024)]
    digest = hashlib.sha256(struct.pack(f"<{len(numbers)}f", *numbers)).hexdigest()
    assert first["data"]["vectors"] == [list(vector) for vector in bench.vectors]
    assert "vectors" not in again["data"]
    assert (again["data"]["count"], again["data"]["dim"]) == (65, 1024)
    assert first["data"]["vectors_digest"] == again["data"]["vectors_digest"] == f"sha256:{digest}"
    assert first["warnings"] == again["warnings"] == [kept_vectors.NOT_KEPT.format(count=len(numbers))]


@pytest.mark.req("LLM-6", "LLM-11")
@pytest.mark.usefixtures("embedder")
def test_what_is_sealed_of_very_many_vectors_is_small(caller: Caller, bench: ProviderBench) -> None:
    bench.vectors = ((0.123456789,) * 1024,) * 128

    call = row_of(embed(caller, 128))

    assert Snapshot.objects.get(invocation_id=call.pk, kind="output").size < 2_000


@pytest.mark.req("LLM-6", "LLM-11")
@pytest.mark.usefixtures("embedder")
def test_few_vectors_are_kept_whole(caller: Caller, bench: ProviderBench) -> None:
    bench.vectors = ((1.0,) * 1024,) * 64

    first, again = (embed(caller, 64, idempotency_key="k-1").json() for _ in range(2))

    assert first["data"] == again["data"]
    assert len(again["data"]["vectors"]) == 64
    assert again["warnings"] == []


@pytest.mark.req("LLM-6", "LLM-11")
@pytest.mark.usefixtures("embedder")
def test_a_format_that_has_no_word_for_a_digest_refuses_what_is_not_kept(caller: Caller, bench: ProviderBench) -> None:
    bench.vectors = ((1.0,) * 1024,) * 65
    body = {"model": EMBEDDER, "input": ["x"] * 65, "hub": {"normalize": False}}
    key = {"Idempotency-Key": "k-1"}

    first = post_embeddings(caller, body, key)
    again = post_embeddings(caller, body, key)

    assert len(first.json()["data"]) == 65
    assert again.status_code == 409
    assert "not kept" in again.json()["error"]["message"]

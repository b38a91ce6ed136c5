"""Vectors and models: do programs get vectors, orders and the list of models in the shapes that they know?"""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Any

import pytest

from invocations.models import Invocation
from tests.support.calls import PAIR, kinds_of
from tests.support.served_formats import MODEL, read_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def vectors(connect: Callable[..., Tool], grant: Callable[..., Any]) -> str:
    grant("model.*")
    return str(connect(alias="vectors", operation="embed").name)


@pytest.mark.req("LLM-1")
def test_a_text_becomes_a_vector_as_numbers_and_as_base64(caller: Caller, vectors: str) -> None:
    body = {"model": vectors, "input": "a red bicycle"}

    plain = caller.ask("/v1/embeddings", body).json()
    packed = caller.ask("/v1/embeddings", body | {"input": ["a red bicycle"], "encoding_format": "base64"}).json()

    (vector,) = [each["embedding"] for each in plain["data"]]
    assert vector == pytest.approx([0.6, 0.8])
    assert struct.unpack("<2f", base64.b64decode(packed["data"][0]["embedding"])) == pytest.approx(vector)
    assert (plain["object"], plain["data"][0]["object"], plain["data"][0]["index"]) == ("list", "embedding", 0)
    assert plain["usage"] == {"prompt_tokens": 1, "total_tokens": 1}
    assert [kinds_of(each) for each in Invocation.objects.all()] == [PAIR, PAIR]


@pytest.mark.req("LLM-1")
@pytest.mark.parametrize(
    ("more", "param"),
    [({"input": [1, 2]}, "input"), ({"dimensions": 8}, "dimensions"), ({"encoding_format": "int8"}, "encoding_format")],
)
def test_what_vectors_cannot_be_asked_for_is_refused_with_its_place(
    more: dict[str, Any], param: str, caller: Caller, vectors: str
) -> None:
    answer = caller.ask("/v1/embeddings", {"model": vectors, "input": "x"} | more)

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.req("LLM-1")
def test_documents_are_ordered_and_returned_to_whom_asks_for_them(
    caller: Caller, connect: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    grant("model.*")
    model = connect(alias="ranker", operation="rerank").name
    body = {"model": model, "query": "cheap", "documents": [{"text": "a bicycle"}], "return_documents": True}

    said = caller.ask("/v1/rerank", body).json()

    assert said["results"] == [{"index": 0, "relevance_score": 0.5, "document": {"text": "a bicycle"}}]
    assert said["meta"]["billed_units"] == {"search_units": 1}


@pytest.mark.req("LLM-1")
def test_the_list_has_the_models_that_the_agent_may_call_and_one_is_found_by_its_alias(
    caller: Caller, connect: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    grant("model.script.main")
    connect()
    connect(alias="other")

    listed = caller.fetch("/v1/models").json()
    one, hidden = caller.fetch("/v1/models/main"), caller.fetch("/v1/models/other")

    (model,) = listed["data"]
    assert (listed["object"], model["id"], model["object"], model["owned_by"]) == ("list", MODEL, "model", "script")
    assert model["created"] > 0
    assert one.json() == model
    assert read_error(hidden) == (404, "model_not_found", "MODEL.UNKNOWN")


@pytest.mark.req("LLM-1")
def test_a_key_is_taken_as_anthropics_programs_send_it(caller: Caller, model: Tool) -> None:
    answer = caller.fetch("/v1/models", **{"Authorization": "", "X-Api-Key": caller.key})

    assert [each["id"] for each in answer.json()["data"]] == [MODEL]

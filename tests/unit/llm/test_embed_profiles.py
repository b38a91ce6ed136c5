"""Embed profiles: are the words that a model of vectors wants before a text put there by the kind of the text alone?"""

from __future__ import annotations

import pytest

from llm.model_features import adapt_embed_request
from llm.problems import ParameterUnsupported
from llm.providers.embed_profiles import EmbedProfile
from llm.requests import EmbedRequest


@pytest.mark.req("LLM-6")
@pytest.mark.parametrize(
    ("name", "query", "passage", "unnamed"),
    [
        ("multilingual-e5-small", "query: a", "passage: a", "query: a"),
        ("intfloat/e5-large-v2", "query: a", "passage: a", "query: a"),
        ("nomic-embed-text:v1.5", "search_query: a", "search_document: a", "search_document: a"),
        ("BAAI/bge-large-en-v1.5", "Represent this sentence for searching relevant passages: a", "a", "a"),
        ("snowflake-arctic-embed2", "query: a", "a", "a"),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: a", "a", "a"),
        ("text-embedding-3-small", "a", "a", "a"),
        ("BAAI/bge-m3", "a", "a", "a"),
        ("something-else", "a", "a", "a"),
        ("code5", "a", "a", "a"),
    ],
)
def test_a_text_has_the_words_of_its_kind_before_it(name: str, query: str, passage: str, unnamed: str) -> None:
    profile = EmbedProfile.from_name(name)

    assert list(profile.prefix_items(["a"], "query")) == [query]
    assert list(profile.prefix_items(["a"], "passage")) == [passage]
    assert list(profile.prefix_items(["a"], None)) == [unnamed]


@pytest.mark.req("LLM-6")
@pytest.mark.parametrize("name", ["multilingual-e5-large-instruct", "e5-mistral-7b-instruct", "Qwen3-Embedding-0.6B"])
def test_models_that_follow_instructions_are_given_one_before_a_query_only(name: str) -> None:
    profile = EmbedProfile.from_name(name)

    (query,) = profile.prefix_items(["a"], "query")
    assert query.startswith("Instruct: ")
    assert query.endswith("a")
    assert list(profile.prefix_items(["a"], "passage")) == ["a"]


@pytest.mark.req("LLM-6")
def test_a_kind_that_a_model_may_not_know_and_a_pooling_that_cannot_be_chosen_are_warned_about_or_refused() -> None:
    request = EmbedRequest(model="main", items=("a",), kind="query", pooling="mean")
    strict = EmbedRequest(model="main", items=("a",), pooling="cls", strict_parameters=True)

    known, warned = adapt_embed_request(request, EmbedProfile.from_name("multilingual-e5-small").build_features())
    assert (known.kind, known.pooling, [each.pointer for each in warned]) == ("query", None, ["/pooling"])
    unknown, warned = adapt_embed_request(request, EmbedProfile.from_name("something-else").build_features())
    assert (unknown.kind, unknown.pooling, [each.pointer for each in warned]) == (None, None, ["/pooling", "/kind"])
    with pytest.raises(ParameterUnsupported):
        adapt_embed_request(strict, EmbedProfile.from_name("multilingual-e5-small").build_features())

"""Commerce knowledge: does the search find what answers the question, in both languages, with something to cite?"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commerce import knowledge, tables
from unitools import runtime

if TYPE_CHECKING:
    from tests.unit.tools.conftest import Ask

SEARCH = "commerce.knowledge.search"
ARTICLES: list[dict[str, Any]] = tables.read(tables.ARTICLES)["articles"]


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("How long can I return an item?", "returns-window"),
        ("shipping a power bank", "ship-batteries"),
        ("cancelling orders", "order-cancel"),
        ("de minimis limits", "customs-deminimis"),
        ("lost parcels", "ship-lost"),
        ("AI agent ordering", "account-agent"),
        ("退货期限", "zh-returns-window"),
        ("退货", "zh-returns-window"),
        ("充电宝可以空运吗", "zh-ship-batteries"),
        ("跨境电商限值", "zh-customs-cbec"),
        ("DDP 和 DAP 的区别", "zh-ddp-dap"),
    ],
)
def test_the_article_that_answers_comes_first(ask: Ask, query: str, document: str) -> None:
    results = ask(SEARCH, {"query": query}).value["results"]

    assert results[0]["document_id"] == document


@pytest.mark.parametrize("article", ARTICLES, ids=lambda article: str(article["id"]))
def test_every_article_is_found_by_its_title(ask: Ask, article: dict[str, Any]) -> None:
    results = ask(SEARCH, {"query": article["title"], "limit": 3}).value["results"]

    assert article["id"] in [result["document_id"] for result in results]


def test_results_come_best_first_and_once_for_each_article(ask: Ask) -> None:
    value = ask(SEARCH, {"query": "duty tax parcel customs", "limit": 20}).value
    scores = [result["score"] for result in value["results"]]

    assert scores == sorted(scores, reverse=True)
    assert len({result["document_id"] for result in value["results"]}) == len(value["results"])
    assert value["total"] >= len(value["results"]) > 5


@pytest.mark.req("SPEC-7", "SPEC-8")
def test_each_result_can_be_cited_and_is_named_as_a_source(ask: Ask) -> None:
    answer = ask(SEARCH, {"query": "refund"})
    by_id = {article["id"]: article for article in ARTICLES}

    documents = {(source.name, source.version) for source in answer.report.sources if source.type == "document"}
    for result in answer.value["results"]:
        article = by_id[result["document_id"]]
        assert article["body"][result["passage"] - 1] == result["text"]
        assert result["snippet"].rstrip("…") in result["text"]
        assert result["citation"] == (f"urn:toolhub:demo:kb:{article['id']}:{article['version']}#p{result['passage']}")
        assert (article["id"], article["version"]) in documents


def test_filters_narrow_the_search(ask: Ask) -> None:
    chinese = ask(SEARCH, {"query": "DDP DAP", "language": "zh"}).value["results"]
    payments = ask(SEARCH, {"query": "return refund coupon", "collection": "payments"}).value["results"]

    assert {result["language"] for result in chinese} == {"zh"}
    assert {result["collection"] for result in payments} == {"payments"}


def test_nothing_found_is_an_empty_answer_with_a_warning(ask: Ask) -> None:
    answer = ask(SEARCH, {"query": "xylophone"})

    assert answer.value["results"] == []
    assert any("Nothing was found" in warning for warning in answer.report.warnings)


@pytest.mark.req("SPEC-6")
@pytest.mark.parametrize("query", ["?!", "   ", "___"])
def test_a_query_without_words_is_refused(ask: Ask, query: str) -> None:
    with pytest.raises(runtime.InvalidArgument, match="no word"):
        ask(SEARCH, {"query": query})


def test_a_query_of_stop_words_alone_is_still_searched(ask: Ask) -> None:
    assert ask(SEARCH, {"query": "the"}).value["query_terms"] == ["the"]


@given(query=st.text(min_size=1, max_size=300))
def test_no_query_breaks_the_search(ask: Ask, query: str) -> None:
    try:
        ask(SEARCH, {"query": query})
    except runtime.InvalidArgument:
        assert knowledge.search_terms(query) == []


@pytest.mark.parametrize(
    "query", ['" OR title:*', "NEAR(refund tax, 2)", "body : refund", "refund AND NOT (", "^refund*"]
)
def test_the_syntax_of_the_index_is_plain_text_to_a_caller(ask: Ask, query: str) -> None:
    assert set(ask(SEARCH, {"query": query}).value["query_terms"]) <= {
        "title",
        "near",
        "refund",
        "tax",
        "2",
        "body",
        "not",
    }


def test_the_longest_queries_fit_into_the_index(ask: Ask) -> None:
    chinese = "".join(chr(0x4E00 + i) for i in range(300))
    single = " ".join(chr(0x4E00 + i) for i in range(150))

    assert len(ask(SEARCH, {"query": chinese}).value["query_terms"]) == 299
    assert len(ask(SEARCH, {"query": single}).value["query_terms"]) == 150


def test_pairs_are_needed_because_trigrams_miss_words_of_two_characters() -> None:
    """Why the index is built this way: the tokenizer that SQLite ships for this finds nothing here."""
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE passage USING fts5(body, tokenize='trigram')")
    index.execute("INSERT INTO passage VALUES ('退货期限是多久')")

    assert index.execute("SELECT count(*) FROM passage WHERE passage MATCH '\"退货\"'").fetchone() == (0,)
    assert knowledge.index_text("退货期").split() == ["退货", "货期"]
    index.close()


def test_a_long_passage_is_cut_to_a_readable_snippet() -> None:
    text = "First sentence. " + "A customs sentence that goes on. " * 20

    cut = knowledge.snippet(text, ["customs"])

    assert cut.startswith("A customs sentence")
    assert cut.endswith("…")
    assert len(cut) <= knowledge.SNIPPET_CHARS


def test_the_collection_is_large_enough_and_bilingual() -> None:
    languages = [article["language"] for article in ARTICLES]

    assert languages.count("en") >= 40
    assert languages.count("zh") >= 10
    assert len({article["id"] for article in ARTICLES}) == len(ARTICLES)

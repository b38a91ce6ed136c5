"""Knowledge: the passages of the help collection that answer a question, and where they stand.

Ranking is BM25 by SQLite's FTS5 on an index in memory. FTS5's own trigram tokenizer finds no Chinese word of two
characters, and most are; so runs of Chinese characters are indexed and searched as overlapping pairs, the way Lucene's
CJK analyzer does it. Latin words go through FTS5's Porter stemmer.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from commerce import tables
from unitools import runtime

TTL_SECONDS = 3_600
SNIPPET_CHARS = 240
HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
WORD = re.compile(r"[^\W_]+")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])")
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can do does for from how i if in is it may me my of on or our that the then there "
        "this to was we what when where which who will with you your",
    )
)


@dataclass(frozen=True, slots=True)
class Passage:
    """One paragraph of an article."""

    article: dict[str, Any]
    number: int
    text: str


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def index_text(text: str) -> str:
    """Text as the index sees it: Chinese runs become overlapping pairs, everything else stays."""
    return HAN.sub(lambda match: f" {' '.join(_pairs(match.group()))} ", text)


def search_terms(query: str) -> list[str]:
    """What to look for: words without stop words (unless there is nothing else) and Chinese pairs, each once."""
    words = [word.lower() for word in WORD.findall(HAN.sub(" ", query))]
    terms = [word for word in words if word not in STOP_WORDS] + [
        pair for match in HAN.finditer(query) for pair in _pairs(match.group())
    ]
    return list(dict.fromkeys(terms or words))


def _match_expression(terms: list[str]) -> str:
    """An FTS5 expression that matches any term. A single Chinese character matches the pairs that begin with it."""
    quoted = (f'"{term}"*' if len(term) == 1 and HAN.fullmatch(term) else f'"{term}"' for term in terms)
    return " OR ".join(quoted)


def _passages(language: str | None, collection: str | None) -> list[Passage]:
    return [
        Passage(article, number, paragraph)
        for article in tables.read(tables.ARTICLES)["articles"]
        if language in (None, article["language"]) and collection in (None, article["collection"])
        for number, paragraph in enumerate(article["body"], start=1)
    ]


def rank(passages: list[Passage], terms: list[str]) -> list[tuple[Passage, float]]:
    """Passages that hold any term, best first; the title counts double."""
    with closing(sqlite3.connect(":memory:")) as index:
        index.execute("CREATE VIRTUAL TABLE passage USING fts5(title, body, tokenize='porter unicode61')")
        index.executemany(
            "INSERT INTO passage (rowid, title, body) VALUES (?, ?, ?)",
            ((i, index_text(p.article["title"]), index_text(p.text)) for i, p in enumerate(passages)),
        )
        rows = index.execute(
            "SELECT rowid, bm25(passage, 2.0, 1.0) AS score FROM passage WHERE passage MATCH ? ORDER BY score, rowid",
            (_match_expression(terms),),
        ).fetchall()
    return [(passages[rowid], -score) for rowid, score in rows]


def snippet(text: str, terms: list[str]) -> str:
    """The sentences of the passage from the first that holds most terms, cut to a readable length."""
    sentences = [sentence for sentence in SENTENCE_END.split(text) if sentence]
    hits = [sum(term in sentence.lower() for term in terms) for sentence in sentences]
    joint = "" if HAN.search(text) else " "
    tail = joint.join(sentences[hits.index(max(hits)) :])
    return tail if len(tail) <= SNIPPET_CHARS else tail[: SNIPPET_CHARS - 1].rstrip() + "…"


def search(query: str, limit: int = 5, language: str | None = None, collection: str | None = None) -> dict[str, Any]:
    """The best passages for a question, at most one an article, each with what is needed to cite it."""
    tables.cite("collection", tables.ARTICLES)
    terms = search_terms(query)
    if not terms:
        raise runtime.InvalidArgument("The query holds no word that can be searched for.", pointer="/query")
    best: dict[str, tuple[Passage, float]] = {}
    for passage, score in rank(_passages(language, collection), terms):
        best.setdefault(passage.article["id"], (passage, score))
    results = []
    for passage, score in list(best.values())[:limit]:
        article = passage.article
        runtime.used_source("document", name=article["id"], version=article["version"])
        results.append(
            {
                "document_id": article["id"],
                "version": article["version"],
                "title": article["title"],
                "language": article["language"],
                "collection": article["collection"],
                "passage": passage.number,
                "snippet": snippet(passage.text, terms),
                "text": passage.text,
                "score": round(score, 4),
                "citation": f"urn:toolhub:demo:kb:{article['id']}:{article['version']}#p{passage.number}",
            }
        )
    if not results:
        runtime.warn("Nothing was found. Try other words, or leave out the language and collection filters.")
    runtime.set_ttl(TTL_SECONDS)
    return {
        "query_terms": terms,
        "results": results,
        "total": len(best),
        "collection_version": tables.version(tables.ARTICLES),
    }

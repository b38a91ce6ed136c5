"""Embed profiles: what a model wants in front of a text that is looked for or looked through, as far as its name tells.

Several models were trained with words before each text, and give worse vectors without a warning where they are missing. Callers say
``kind: query | passage`` and need not know the words. The words are those of the models' own cards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from llm.model_features import ModelFeatures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class EmbedProfile:
    """Words before a text, by its kind. ``known``: they are all that the kind means to the model, be it nothing."""

    query: str = ""
    passage: str = ""
    unnamed: str = ""  # where the request names no kind
    known: bool = True

    @classmethod
    def from_name(cls, name: str) -> EmbedProfile:
        """Never raises: a model that nothing is known of is given texts as they are."""
        return next((profile for pattern, profile in _PATTERNS if pattern.search(name.lower())), _UNKNOWN)

    def build_features(self) -> ModelFeatures:
        """A provider that is asked over a network pools as its model was trained to, and cannot be told otherwise."""
        return ModelFeatures.passing("kind") if self.known else ModelFeatures()

    def prefix_items(self, items: Iterable[str], kind: Literal["query", "passage"] | None) -> Iterator[str]:
        words = {"query": self.query, "passage": self.passage, None: self.unnamed}[kind]
        return (words + item for item in items)


_SEARCH = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
_START = r"(?:^|[^a-z0-9])"
# The first that is found in the name counts.
_FAMILIES: tuple[tuple[str, EmbedProfile], ...] = (
    (r"e5-[a-z0-9-]*instruct", EmbedProfile(f"{_INSTRUCT} ")),
    (r"e5(?![a-z0-9])", EmbedProfile("query: ", "passage: ", "query: ")),
    (r"nomic-embed", EmbedProfile("search_query: ", "search_document: ", "search_document: ")),
    (r"embeddinggemma", EmbedProfile("task: search result | query: ", "title: none | text: ", "title: none | text: ")),
    (r"qwen3-embedding", EmbedProfile(_INSTRUCT)),
    (r"arctic-embed(?:2|[a-z0-9-]*-v2)", EmbedProfile("query: ")),
    (r"(?:bge-(?:small|base|large)-en|mxbai-embed|arctic-embed)", EmbedProfile(_SEARCH)),
    # One vector for all kinds of texts.
    (r"(?:text-embedding-(?:3|ada)|bge-m3|all-minilm|gte-)", EmbedProfile()),
)
_PATTERNS = tuple((re.compile(_START + pattern), profile) for pattern, profile in _FAMILIES)
_UNKNOWN = EmbedProfile(known=False)

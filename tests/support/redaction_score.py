"""The score of redaction: how well are the labelled places of a corpus found?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from access.redaction import find_hits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.redaction_heldout_corpus import Text

MOSTLY = 0.75  # of its characters, for what has no sharp end


@dataclass(slots=True)
class Score:
    """By kind. A label is found when hits of its kind cover all of it (an address: most of it); a hit is right when it lies on a
    label of its kind."""

    labels: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    hits: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    missed: list[tuple[str, str, str]] = field(default_factory=list)
    wrong: list[tuple[str, str, str]] = field(default_factory=list)

    def recall(self, kind: str) -> float:
        return self.found[kind] / self.labels[kind]

    def precision(self, kinds: Iterable[str]) -> float:
        kinds = list(kinds)
        return sum(self.right[kind] for kind in kinds) / sum(self.hits[kind] for kind in kinds)


def score_of(corpus: Iterable[Text], kinds: tuple[str, ...]) -> Score:
    score = Score()
    for text in corpus:
        hits = find_hits(text.text, kinds, name=text.name)
        for start, end, kind in text.labels:
            covered = sum(max(0, min(hit.end, end) - max(hit.start, start)) for hit in hits if hit.kind == kind)
            is_found = covered >= (end - start) * (MOSTLY if kind == "address" else 1)
            score.labels[kind] += 1
            score.found[kind] += is_found
            if not is_found:
                score.missed.append((kind, text.text[start:end], f"{text.name}: {text.text}"))
        for hit in hits:
            is_right = any(start < hit.end and hit.start < end and kind == hit.kind for start, end, kind in text.labels)
            score.hits[hit.kind] += 1
            score.right[hit.kind] += is_right
            if not is_right:
                score.wrong.append((hit.kind, text.text[hit.start : hit.end], f"{text.name}: {text.text}"))
    return score

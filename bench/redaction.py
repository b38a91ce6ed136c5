"""Redaction: how long it takes to look through 10 KiB of output that is dense with what must not be seen."""

from __future__ import annotations

import json
import time

from access.redaction import apply_obligations
from tests.support.redaction_heldout_corpus import TO_LOOK_AT, texts

BYTES = 10 * 1024
ROUNDS = 30
DENSE, PLAIN = "redaction of dense text", "redaction of plain prose"
REDACT_ALL = [{"action": "redact", "detector": "all"}]


def build_documents(size: int = BYTES) -> list[list[str]]:
    """Outputs of this size, each a list of texts of all five countries."""
    found: list[list[str]] = [[]]
    left = size
    for text in texts(TO_LOOK_AT):
        if left <= 0:
            found.append([])
            left = size
        found[-1].append(text.text)
        left -= len(text.text.encode())
    return found[:-1]


def measure_detectors() -> dict[str, list[float]]:
    """Milliseconds of CPU for each output: text full of what is looked for, and prose without any."""
    dense = build_documents()[:ROUNDS]
    plain = [["The quick brown fox jumps over the lazy dog, and nobody minds. " * (BYTES // 63)]] * ROUNDS
    return {DENSE: [_ms(each) for each in dense], PLAIN: [_ms(each) for each in plain]}


def _ms(document: list[str]) -> float:
    begun = time.thread_time()
    apply_obligations(document, REDACT_ALL, call_id="inv_x")
    return (time.thread_time() - begun) * 1000


if __name__ == "__main__":
    print(json.dumps(measure_detectors()))

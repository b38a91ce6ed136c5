"""Llama library: a module in the place of xllamacpp, for tests without its packages. What it computes is known: how long a text is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NAME = "xllamacpp"
PROGRAM = """
import json, os, signal
from types import SimpleNamespace

class CommonParams(SimpleNamespace):
    def __init__(self):
        super().__init__(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())

class llama_pooling_type:
    LLAMA_POOLING_TYPE_MEAN, LLAMA_POOLING_TYPE_RANK = 1, 4

class Server:
    def __init__(self, parameters):
        {begin}

    def handle_metrics(self):
        return ""

    def handle_chat_completions(self, body, take):
        {before}
        for choices in [{"delta": {"content": "Paris."}}], [{"delta": {}, "finish_reason": "stop"}]:
            take(json.dumps({"choices": choices}))
        take(json.dumps({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}))

    def handle_embeddings(self, body):
        {before}
        texts = json.loads(body)["input"]
        rows = [{"index": at, "embedding": [float(len(text)), 1.0]} for at, text in enumerate(texts)]
        return json.dumps({"model": os.getcwd(), "data": rows[::-1], "usage": count(texts)})

    def handle_rerank(self, body):
        {before}
        texts = json.loads(body)["documents"]
        rows = [{"index": at, "relevance_score": 1 / len(text)} for at, text in enumerate(texts)]
        rows.sort(key=lambda row: -row["relevance_score"])
        return json.dumps({"model": os.getcwd(), "results": rows, "usage": count(texts)})

def count(texts):
    return {"prompt_tokens": len(texts), "total_tokens": len(texts)}
"""


def install_library(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, begin: str = "pass", before: str = "pass"
) -> None:
    """``begin``: what happens where a file is loaded; ``before``: where a model is asked. Processes that are started see it, too."""
    (folder / f"{NAME}.py").write_text(PROGRAM.replace("{begin}", begin).replace("{before}", before))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, NAME, raising=False)

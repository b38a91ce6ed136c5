"""llm-comply: does llm-comply, which nobody here wrote, find the hub's formats as they should be?"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.processes import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contracts.models.served.conftest import ServedHub

PATIENCE_S = 300
# It asks only models that it knows by name.
SKIPPED = {
    "openai-chat": {"chat-reasoning-summary"},
    "anthropic": {"anth-thinking-display"},
    "open-responses": {"reasoning-summary"},
    "google-genai": set(),
}
# What the hub does not have: it answers 404, as the judge lets it, and passes on no texts of thoughts.
WARNED = {"open-responses": {"compact-response"}, "google-genai": {"google-thinking"}}
WORDS = {
    "google-genai": ["--auth-header", "x-goog-api-key", "--no-bearer"],
    "anthropic": ["--auth-header", "x-api-key", "--no-bearer", "--header", "anthropic-version:2023-06-01"],
}


def judge(served: ServedHub, form: str, home: Path) -> list[dict[str, Any]]:
    base = served.url if form == "google-genai" else f"{served.url}/v1"
    words = [sys.executable, "-m", "llm_comply.cli", "--format", form, "--base-url", base, "--json"]
    words += ["--api-key", served.key, "--model", "open", "--verbose", *WORDS.get(form, [])]
    env = clean_environment(HOME=str(home), NO_PROXY="*")
    done = subprocess.run(
        words, env=env, cwd=home, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL
    )
    assert done.stdout.lstrip().startswith(("{", "[")), done.stdout + done.stderr
    found = json.loads(done.stdout)
    results: list[dict[str, Any]] = found["results"] if isinstance(found, dict) else found
    return results


@pytest.mark.req("LLM-1", "LLM-3")
@pytest.mark.parametrize("form", SKIPPED)
def test_every_test_passes(form: str, served: ServedHub, tmp_path: Path) -> None:
    results = {each["id"]: each for each in judge(served, form, tmp_path)}

    assert len(results) >= 9
    assert {id for id, each in results.items() if each["status"] == "skipped"} == SKIPPED[form]
    failed = {id: each for id, each in results.items() if each["status"] == "failed"}
    assert failed == {}
    warned = {id: each["warnings"] for id, each in results.items() if each.get("warnings")}
    assert set(warned) == WARNED.get(form, set()), warned

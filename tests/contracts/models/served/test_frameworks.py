"""Agent frameworks: do the frameworks that agents are written with ask the hub's models, run its tools and go on, without a
change of theirs?
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripts.provision import peers
from tests.contracts.models.served.provider import DOCUMENT, HELLO, VECTOR
from tests.e2e.processes import clean_environment

if TYPE_CHECKING:
    from tests.contracts.models.served.conftest import ServedHub

CLIENTS = Path(__file__).parent / "clients"
PATIENCE_S = 300.0
RAN = "SELECT count(*) FROM invocations_invocation WHERE tool = 'conformance.tools.greet' AND state = 'succeeded'"
BY_TOOL = {"city": "you", "degrees": 1}  # as the provider fills in a schema
FOREIGN = "LLM.FOREIGN_TOOL"


def run_client(program: str, environment: str, served: ServedHub, home: Path, *more: str) -> dict[str, Any]:
    """What a program says, read as JSON; its last line, since some of them greet."""
    words = [str(peers.ensure_python(environment)), str(CLIENTS / f"{program}.py"), served.url, served.key, *more]
    env = clean_environment(HOME=str(home), NO_PROXY="*", LITELLM_LOCAL_MODEL_COST_MAP="True")
    done = subprocess.run(
        words, env=env, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, cwd=home
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.req("LLM-1", "LLM-2", "LLM-3")
@pytest.mark.parametrize(
    ("program", "environment", "more"),
    [
        ("with_openai_agents", "frameworks", {}),
        (
            "with_langchain",
            "frameworks",
            {"typed": json.loads(DOCUMENT), "by_tool": BY_TOOL, "vector": pytest.approx(VECTOR)},
        ),
        ("with_pydantic_ai", "frameworks", {"typed": json.loads(DOCUMENT), "foreign": FOREIGN}),
        ("with_litellm", "served-litellm", {"vector": pytest.approx(VECTOR), "error": "RateLimitError"}),
    ],
)
def test_a_framework_runs_a_tool_of_the_hub_and_the_second_turn_answers(
    program: str, environment: str, more: dict[str, Any], served: ServedHub, tmp_path: Path
) -> None:
    before = served.hub.count(RAN)

    said = run_client(program, environment, served, tmp_path)

    assert "Hello, you!" in said.pop("loop")
    assert said.pop("stream") == HELLO
    if "foreign" in said:
        said["foreign"] = FOREIGN if FOREIGN in said["foreign"] else said["foreign"]
    assert said == more
    assert served.hub.count(RAN) == before + 1

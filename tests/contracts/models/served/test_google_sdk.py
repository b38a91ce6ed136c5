"""Google's SDK: does Google's own SDK work with the hub as with Google, below the version that it asks for and below the other?"""

from __future__ import annotations

import functools
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from scripts.provision import peers
from tests.contracts.models.served.provider import HELLO, VECTOR
from tests.contracts.models.served.test_frameworks import RAN, run_client
from tests.e2e.processes import clean_environment
from tests.mcp_conformance.arrange import PREFIX
from tests.support.doc_blocks import ALL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contracts.models.served.conftest import ServedHub

GREET = f"{PREFIX}greet".replace(".", "_")
WEATHER = {"city": "Oslo", "degrees": 7}


@pytest.fixture(scope="module", params=["v1", "v1beta"])
def told(request: pytest.FixtureRequest, served: ServedHub, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the SDK has seen, story by story, in one run of its program. ``ran``: how often the hub has run the tool meanwhile."""
    before = served.hub.count(RAN)
    found = run_client("with_google_genai", "google-genai", served, tmp_path_factory.mktemp("google"), request.param)
    return found | {"ran": served.hub.count(RAN) - before}


@pytest.mark.req("LLM-1", "LLM-5", "LLM-7")
def test_a_whole_answer_and_a_stream_say_the_same(told: dict[str, Any]) -> None:
    said = told["ask_and_stream"]

    assert said["whole"] == said["streamed"] == HELLO
    assert said["ends"] == ["STOP", "STOP"]
    assert said["usage"][0] == said["usage"][1]
    assert said["usage"][0][2] == 7
    assert said["chunks"] > 3  # they came one by one
    assert (said["model"], said["call"]) == ("model.mock.main", True)
    assert told["ask_asynchronously"] == [HELLO, HELLO]


@pytest.mark.req("LLM-2", "LLM-3")
def test_calls_are_proposed_made_by_the_hub_and_answered(told: dict[str, Any]) -> None:
    said = told["call_functions"]

    assert said["called"] == [[GREET, {"name": "you"}]] * 2
    assert "Hello, you!" in said["loop"]
    assert (said["turns"], told["ran"]) == (4, 2)


@pytest.mark.req("LLM-3")
def test_a_function_of_its_own_is_called_by_the_sdk_itself(told: dict[str, Any]) -> None:
    assert "Hello, you!" in told["call_automatically"]


@pytest.mark.req("LLM-2", "LLM-5")
def test_a_conversation_that_was_streamed_goes_on(told: dict[str, Any]) -> None:
    assert told["talk_in_streams"] == {"said": [HELLO, HELLO], "roles": ["user", "model", "user", "model"]}


@pytest.mark.req("LLM-8")
def test_an_answer_is_parsed_into_the_type_that_it_was_asked_for(told: dict[str, Any]) -> None:
    assert told["ask_for_json"] == [WEATHER, WEATHER]


@pytest.mark.req("LLM-2")
def test_a_picture_goes_in_the_sdks_own_base64(told: dict[str, Any]) -> None:
    assert told["show_a_picture"] == HELLO


@pytest.mark.req("LLM-6")
def test_texts_become_vectors(told: dict[str, Any]) -> None:
    assert told["embed_texts"] == [pytest.approx(VECTOR)] * 2


@pytest.mark.req("LLM-1", "LLM-7")
def test_models_are_listed_page_by_page_and_tokens_counted(told: dict[str, Any]) -> None:
    said = told["count_and_list"]

    assert [name for name, _ in said["listed"]] == [f"models/model.mock.{each}" for each in ("main", "open", "vectors")]
    assert said["listed"][2][1] == ["embedContent", "batchEmbedContents"]
    assert said["one"] == "models/model.mock.main"
    assert 0 < said["counted"] < 30


@pytest.mark.req("LLM-4")
def test_what_the_format_has_no_place_for_is_said_to_the_hub(told: dict[str, Any]) -> None:
    assert told["speak_to_the_hub"] == HELLO


@pytest.mark.req("LLM-9")
def test_what_goes_wrong_is_an_error_of_the_class_that_programs_expect(told: dict[str, Any]) -> None:
    assert told["meet_errors"] == {
        "stranger": ["ClientError", 401, "UNAUTHENTICATED", "AUTH.UNAUTHENTICATED"],
        "unknown": ["ClientError", 404, "NOT_FOUND", "MODEL.UNKNOWN"],
        "candidates": ["ClientError", 400, "INVALID_ARGUMENT", "LLM.UNSUPPORTED"],
        "limit": ["ClientError", 400, "INVALID_ARGUMENT", "SCHEMA.VALIDATION_FAILED"],
        "busy": ["ClientError", 429, "RESOURCE_EXHAUSTED", "PROVIDER.RATE_LIMITED"],
        "long": ["ClientError", 400, "INVALID_ARGUMENT", "LLM.CONTEXT_OVERFLOW"],
        "broken": ["ServerError", 502, "INTERNAL", "PROVIDER.STREAM_TRUNCATED"],
    }


@pytest.mark.req("LLM-5", "LLM-9")
def test_a_stream_that_breaks_off_is_an_error_behind_what_was_said(told: dict[str, Any]) -> None:
    assert told["meet_a_broken_stream"] == {"spoke": True, "code": 502, "reason": "PROVIDER.STREAM_TRUNCATED"}


@pytest.mark.req("LLM-5")
def test_who_leaves_a_stream_leaves_nothing_open(told: dict[str, Any]) -> None:
    """The hub counts calls without their pair when it is stopped (tests/contracts/models/served/conftest.py)."""
    assert told["leave_a_stream"] is True


@pytest.mark.req("LLM-1")
def test_the_program_of_the_how_to_runs_as_it_is_written(served: ServedHub, tmp_path: Path) -> None:
    [block] = [each for each in ALL if each.page.name == "use-googles-sdk.md" and each.language == "python"]
    here = {"https://hub.example": served.url, "hub_live_…": served.key, "model.openai.main": "model.mock.main"}
    program = tmp_path / "asked.py"
    program.write_text(functools.reduce(lambda text, word: text.replace(word, here[word]), here, block.text))

    words = [str(peers.ensure_python("google-genai")), str(program)]
    said = subprocess.run(words, env=clean_environment(NO_PROXY="*"), cwd=tmp_path, capture_output=True, text=True)

    assert said.stdout.strip() == HELLO, said.stderr

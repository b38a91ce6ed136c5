"""The wheel of the model layer: can a program ask models that has the wheel of the model layer, and neither the hub nor Django?"""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.doc_blocks import ALL
from tests.support.installed_wheels import find_closure, install_wheels, read_name
from tests.support.model_servers import Reply, event_reply, model_server
from tests.support.model_streams import chat_chunks

if TYPE_CHECKING:
    from tests.support.http_server import Heard

ROOT = Path(__file__).resolve().parents[3]
PROJECT, OF_TOOLS, OF_HUB = (
    tomllib.loads((ROOT / each / "pyproject.toml").read_text())["project"]
    for each in ("packaging/toolhub-llm", "packaging/unitools", ".")
)
PAGE = "ask-models-without-a-hub.md"
ADDRESS = "http://127.0.0.1:11434"
IMPORT_ALL = """
import importlib, pathlib, sys
root = pathlib.Path(importlib.import_module("toolhub_llm").__file__).parent
for path in sorted(root.rglob("*.py")):
    importlib.import_module(".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__"))
strangers = {"django", "rest_framework", "celery", "llm", "kernel", "toolhub"} & {name.partition(".")[0] for name in sys.modules}
print(sorted(strangers), len(list(root.rglob("*.py"))))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    extras = PROJECT["optional-dependencies"]["models"]
    asked = [*PROJECT["dependencies"], *extras, *OF_TOOLS["dependencies"], *OF_TOOLS["optional-dependencies"]["hub"]]
    names = {read_name(each) for each in asked} - {OF_TOOLS["name"]}
    needed = find_closure({*names, "openai", "anthropic", "tiktoken"})  # what the extras of one of them name
    return install_wheels(tmp_path_factory.mktemp("llm"), ["unitools", "toolhub-llm"], needed, extra="models")


def run(python: Path, program: str, folder: Path) -> str:
    done = subprocess.run([python, "-c", program], cwd=folder, env={}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.req("LLM-1")
def test_the_list_of_packages_is_that_of_the_folder() -> None:
    setuptools = tomllib.loads((ROOT / "packaging/toolhub-llm/pyproject.toml").read_text())["tool"]["setuptools"]
    parts = {path.parent.relative_to(ROOT).as_posix().replace("/", ".") for path in ROOT.glob("llm/**/__init__.py")}

    assert {each for each in setuptools["packages"] if "kernel" not in each} == {f"toolhub_{each}" for each in parts}
    assert [path for path in ROOT.glob("llm/**/*") if path.is_file() and path.suffix not in (".py", ".pyc")] == []
    assert PROJECT["optional-dependencies"]["models"] == OF_HUB["optional-dependencies"]["models"]


@pytest.mark.req("LLM-1")
def test_every_module_is_there_and_none_needs_the_hub(python: Path, tmp_path: Path) -> None:
    strangers, count = run(python, IMPORT_ALL, tmp_path).rsplit(" ", 1)

    assert strangers == "[]"
    assert int(count) > len(list(ROOT.glob("llm/**/*.py")))


def answer(heard: Heard) -> Reply:
    """A proposal, and at the end what the tool has said."""
    last = json.loads(heard.body)["messages"][-1]
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}
    message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    if last["role"] == "tool":
        *_, said, _ = last["content"].splitlines()  # before the closing mark of a text that nobody vouches for
        message = {"role": "assistant", "content": f"It is {said}."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    chunks = chat_chunks({"id": "x", "created": 1, "model": "m-1", "choices": [choice]})
    return event_reply(*chunks, b"data: [DONE]\n\n")


@pytest.mark.req("LLM-1")
def test_the_program_of_the_page_asks_a_model_and_runs_what_it_proposes(python: Path, tmp_path: Path) -> None:
    (program,) = [block.text for block in ALL if block.page.name == PAGE and block.language == "python"]
    with model_server(answer) as provider:
        assert ADDRESS in program
        said = run(python, program.replace(ADDRESS, provider.url), tmp_path)

    assert said == "It is 5."
    assert [each.path for each in provider.heard] == ["/v1/chat/completions"] * 2

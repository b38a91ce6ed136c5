"""Brought objects in a box: are functions of others called as they are, with nothing kept, and described as they were brought?"""

from __future__ import annotations

import json
import shutil
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from invocations.run.object_probe import describe_failure
from invocations.sandbox.base import BoxKey, Limits, Profile, RunStatus, SandboxCall
from tests.support.brought_objects import bring_python, read_manifests
from tests.support.sandboxes import CONTEXT, docker_sandbox
from unitools.mcp_listings import compute_json_digest
from unitools.packages import build_zip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from invocations.sandbox.base import RunOutcome
    from invocations.sandbox.docker import DockerSandbox

KEY = "k3y-of-the-tenant"
ASKS = '''
import os
import shop_parts

CALLS: list[str] = []


def ask(word: str, times: int = 1) -> dict[str, str | int]:
    """Ask the shop.

    Args:
        word: what for
    """
    CALLS.append(word)
    return {"said": shop_parts.double(word) * times, "calls": len(CALLS), "key": os.environ["SHOP_KEY"][-3:]}
'''
PROBED = Limits(result_bytes=1 << 20, result_depth=64)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    made = docker_sandbox()
    yield made
    made.close()


@pytest.fixture
def brought(tmp_path: Path) -> Path:
    """A package of the author's, brought."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text(
        ASKS.replace("import shop_parts", "from shop import parts as shop_parts")
    )
    (tmp_path / "shop" / "parts.py").write_text("def double(word: str) -> str:\n    return word * 2\n")
    said = bring_python(tmp_path, "shop:ask", "--secret", "SHOP_KEY")
    assert said.returncode == 0, said.stderr
    return tmp_path / "python_shop"


def run(
    sandbox: DockerSandbox, folder: Path, needs: Path, entry: str = "run", *, level: str = "fresh", **arguments: Any
) -> RunOutcome:
    manifest = read_manifests(folder)["ask"]
    call = SandboxCall(
        name=f"inv-{uuid.uuid4().hex}",
        package=build_zip(folder),
        module=manifest["implementation"]["module"],
        entry=entry,
        arguments=json.dumps(arguments).encode(),
        context=CONTEXT,
        dependencies=needs,
        key=BoxKey("tenant", str(folder), dependencies=str(needs)),
        secrets={"SHOP_KEY": KEY},
    )
    return sandbox.run(Profile(PROBED, isolation=level), call)


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize("level", ["fresh", "shared", "single"])
def test_each_call_has_its_secrets_and_nothing_of_the_one_before(
    sandbox: DockerSandbox, brought: Path, sdk_dependencies: Path, level: str
) -> None:
    outcomes = [run(sandbox, brought, sdk_dependencies, level=level, word="tea", times=2) for _ in range(2)]

    for each in outcomes:
        assert (each.status, each.value) == (RunStatus.OK, {"said": "teateateatea", "calls": 1, "key": KEY[-3:]}), each


@pytest.mark.req("BRING-4")
def test_a_package_that_reads_a_secret_while_it_is_imported_is_imported_after_the_secrets(
    sandbox: DockerSandbox, brought: Path, sdk_dependencies: Path, tmp_path: Path
) -> None:
    needs = tmp_path / "deps"
    shutil.copytree(sdk_dependencies, needs, symlinks=True)
    (needs / "serplib.py").write_text("import os\nKEY = os.environ.get('SHOP_KEY')\n")
    tmp_path.chmod(0o755)  # tools are nobody
    (brought / "source" / "shop" / "parts.py").write_text(
        "import serplib\ndef double(word: str) -> str:\n    return f'{word} {serplib.KEY}'\n"
    )

    outcome = run(sandbox, brought, needs, level="shared", word="tea")

    assert (outcome.status, outcome.value) == (RunStatus.OK, {"said": f"tea {KEY}", "calls": 1, "key": KEY[-3:]}), (
        outcome
    )


@pytest.mark.req("BRING-4")
def test_it_says_of_itself_in_a_box_what_it_said_where_it_was_brought(
    sandbox: DockerSandbox, brought: Path, sdk_dependencies: Path
) -> None:
    outcome = run(sandbox, brought, sdk_dependencies, "describe", level="single")

    assert outcome.status is RunStatus.OK, outcome
    assert compute_json_digest(outcome.value) == read_manifests(brought)["ask"]["origin"]["object_digest"]


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("import subprocess\nsubprocess.run(['uv', 'add', 'x'])", "It installs packages when it is made."),
        (
            "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'x'])",
            "installs packages",
        ),
        ("import a_module_that_nobody_has", "a_module_that_nobody_has did not come along"),
        (
            "raise ImportError('Could not import wiki python package. Please install it with `pip install wiki`.')",
            "The module wiki did not come along",
        ),
        ("raise ImportError('`exa_py` not found, please run `uv add exa_py`')", "The module exa_py did not come along"),
        ("import os\nos.environ['API_KEY_OF_IT']", "wants API_KEY_OF_IT in its environment"),
        ("def ask(", "Read what it says below."),
    ],
)
def test_what_cannot_be_made_in_a_box_names_the_remedy(
    sandbox: DockerSandbox, brought: Path, sdk_dependencies: Path, code: str, remedy: str
) -> None:
    (brought / "source" / "shop" / "__init__.py").write_text(code)

    failure = describe_failure(run(sandbox, brought, sdk_dependencies, "describe", level="single"))

    assert failure.code == "object_not_made"
    assert remedy in failure.remedy, failure


@pytest.mark.req("BRING-4")
def test_a_source_file_without_its_description_is_told_to_have_one(
    sandbox: DockerSandbox, brought: Path, sdk_dependencies: Path
) -> None:
    source = brought / "ask.py"
    source.write_text(source.read_text().partition("def describe")[0])

    failure = describe_failure(run(sandbox, brought, sdk_dependencies, "describe", level="single"))

    assert "put it back" in failure.remedy, failure

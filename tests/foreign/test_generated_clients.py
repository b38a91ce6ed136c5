"""Generated clients: do makers of clients take the whole OpenAPI document, and know the types of what is called most?"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripts.provision import peers

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENTS = Path(__file__).with_name("clients")
# The same as a hub serves: `make check` compares them.
DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
PACKAGE = "toolhub_client"
PATIENCE_S = 300.0


def run(words: Sequence[str | Path], where: Path, **env: str) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=where, env=env or None, capture_output=True, text=True, timeout=PATIENCE_S
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


@pytest.mark.long
@pytest.mark.req("CONN-6")
def test_openapi_python_client_leaves_nothing_out_and_types_the_main_call(tmp_path: Path) -> None:
    python = peers.ensure_python("openapi")
    programs = python.parent

    said = run(
        [programs / "openapi-python-client", "generate", "--path", DOCUMENT, "--output-path", tmp_path / "made"],
        tmp_path,
        PATH=f"{programs}:/usr/bin:/bin",  # it formats with the ruff beside it
    )

    assert re.search("WARN|ERROR|Unable|omitted|may be missing", said) is None, said
    operations = [
        each["operationId"] for item in json.loads(DOCUMENT.read_text())["paths"].values() for each in item.values()
    ]
    made = {path.stem for path in (tmp_path / "made" / PACKAGE / "api").rglob("*.py")}
    assert set(operations) - made == set()
    shutil.copy(CLIENTS / "quote_with_generated.py", tmp_path / "made" / "quote.py")
    run([programs / "mypy", "--strict", "--follow-imports=silent", "quote.py"], tmp_path / "made")


@pytest.mark.long
@pytest.mark.req("CONN-6")
def test_openapi_typescript_leaves_nothing_out_and_types_the_main_call(tmp_path: Path) -> None:
    modules = peers.ensure_node_modules("typescript")
    (tmp_path / "node_modules").symlink_to(modules)
    node = shutil.which("node")
    assert node

    make: list[str | Path] = [
        node,
        modules / "openapi-typescript" / "bin" / "cli.js",
        DOCUMENT,
        "--output",
        tmp_path / "api.d.ts",
    ]
    run([*make, "--no-default-non-nullable"], tmp_path)  # what has a default may be left out of a request

    shutil.copy(CLIENTS / "quote_with_generated.ts", tmp_path / "quote.ts")
    options = ["--noEmit", "--strict", "--module", "nodenext", "--moduleResolution", "nodenext", "--target", "es2022"]
    run([node, modules / "typescript" / "bin" / "tsc", *options, "--lib", "es2022,dom", "quote.ts"], tmp_path)


def test_no_form_has_a_field_of_its_own_name() -> None:
    """Names: a client in Python reads such a form into a variable that its own field then takes."""
    document: dict[str, Any] = json.loads(DOCUMENT.read_text())
    forms = document["components"]["schemas"]

    assert [
        name
        for name, form in forms.items()
        if re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() in form.get("properties", {})
    ] == []


def test_every_operation_says_what_it_is_for_and_has_a_name_of_its_own() -> None:
    document: dict[str, Any] = json.loads(DOCUMENT.read_text())
    operations = [each for item in document["paths"].values() for each in item.values()]

    assert [each["operationId"] for each in operations if not each.get("description")] == []
    assert len({each["operationId"] for each in operations}) == len(operations)

"""The package of the verifier: can somebody verify who has neither the hub nor Django?"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.installed_wheels import install_wheels
from tests.unit.evidence.verify.bundles import Log, facts, files_of, write
from tests.unit.evidence.verify.trees import SIGNER

if TYPE_CHECKING:
    from pathlib import Path

NEEDED = ("cryptography", "cffi", "pycparser")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`toolhub-verify`, installed from its wheel where only `cryptography` is."""
    python = install_wheels(tmp_path_factory.mktemp("package"), ["toolhub-verify"], NEEDED)
    return python.with_name("toolhub-verify")


def test_the_package_verifies_a_bundle_where_there_is_no_django(program: Path, tmp_path: Path) -> None:
    log = Log(facts(12))
    path = write(tmp_path / "bundle.zip", log, files_of(log, older=5))
    (tmp_path / "kept").write_text(log.checkpoint(5))
    asked: list[str | Path] = [program, path, "--key", str(SIGNER.key), "--older", tmp_path / "kept", "--json"]

    done = subprocess.run(asked, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["ok"], told["good"], told["older"]) == (True, 12, [5])
    for module in ("django", "evidence", "toolhub"):
        missing: list[str | Path] = [program.with_name("python"), "-c", f"import {module}"]
        assert (
            b"ModuleNotFoundError"
            in subprocess.run(missing, cwd=tmp_path, env={}, capture_output=True, check=False).stderr
        )


def test_the_package_refuses_a_bundle_that_was_changed(program: Path, tmp_path: Path) -> None:
    log = Log(facts(12))
    files = files_of(log)
    files["facts/000000000004.jsonl"] = files["facts/000000000004.jsonl"].replace(b"succeeded", b"fallen", 1)
    path = write(tmp_path / "bundle.zip", log, files)

    done = subprocess.run([program, path], cwd=tmp_path, env={}, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "The first bad leaf is 5; 11 facts are good." in done.stdout

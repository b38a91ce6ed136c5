"""Can somebody verify who has neither the hub nor Django?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.unit.evidence.verify.bundles import Log, facts, files_of, write
from tests.unit.evidence.verify.trees import SIGNER

ROOT = Path(__file__).resolve().parents[4]
NEEDED = ("cryptography", "cffi", "pycparser")
QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`toolhub-verify`, installed from its wheel where only `cryptography` is."""
    folder = tmp_path_factory.mktemp("package")
    for part in ("packaging/toolhub-verify", "evidence/verify"):
        shutil.copytree(ROOT / part, folder / "source" / part, ignore=shutil.ignore_patterns("__pycache__", "build"))
    pip: list[str | Path] = [sys.executable, "-m", "pip"]
    env = os.environ | QUIET
    wheel = [*pip, "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation", "-w", folder]
    subprocess.run([*wheel, folder / "source/packaging/toolhub-verify"], check=True, env=env)
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv/bin/python"
    site = next((folder / "venv/lib").glob("python*/site-packages"))
    for name in NEEDED:
        installed = distribution(name)
        for file in installed.files or []:
            if ".." not in file.parts and file.suffix != ".pyc":
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(installed.locate_file(file)), site / file)
    (built,) = folder.glob("*.whl")
    subprocess.run([*pip, "--python", python, "install", "-q", "--no-index", built], check=True, env=env)
    return folder / "venv/bin/toolhub-verify"


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

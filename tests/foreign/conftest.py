"""The foreign verifier: Go's own transparency log code, as Debian packages it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SOURCE = Path(__file__).with_name("verifier.go")
GOCODE = Path("/usr/share/gocode")  # where Debian's golang-…-dev packages put their sources


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[dict[str, str | bytes]]], list[str]]:
    """What Go answers to each of these tasks."""
    go = shutil.which("go")
    assert go and (GOCODE / "src/golang.org/x/mod/sumdb").is_dir(), (
        "There is no Go, or no golang.org/x/mod. `make test` installs them:  sudo apt-get install golang-go golang-golang-x-mod-dev"
    )
    folder = tmp_path_factory.mktemp("foreign")
    program = folder / "verifier"
    env = os.environ | {"GO111MODULE": "off", "GOPATH": str(GOCODE), "GOCACHE": str(folder / "cache"), "GOFLAGS": ""}
    subprocess.run([go, "build", "-o", program, SOURCE], check=True, env=env | {"CGO_ENABLED": "0"})

    def ask(tasks: Sequence[dict[str, str | bytes]]) -> list[str]:
        text = "".join(
            json.dumps(
                {key: b64encode(value).decode() if isinstance(value, bytes) else value for key, value in task.items()}
            )
            + "\n"
            for task in tasks
        )
        done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
        answers = done.stdout.splitlines()
        assert len(answers) == len(tasks)
        return answers

    return ask

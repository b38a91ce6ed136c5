"""The unitools command: does ``python -m unitools diff`` say what changed, and exit with the answer?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import manifest
from unitools.command import main

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return written(tmp_path / "old.json", manifest())


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def diff(*arguments: object) -> int:
    return main(["diff", *map(str, arguments)])


@pytest.mark.req("TOOLS-9")
def test_a_right_version_exits_with_0(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = written(tmp_path / "new.json", manifest(version="1.1.0", ttl_seconds=60))

    assert diff(old, new) == 0
    said = capsys.readouterr().out
    assert "minor  low   ttl.added  /ttl_seconds" in said
    assert "1.0.0 -> 1.1.0 is right: the changes need minor, the numbers allow minor." in said


@pytest.mark.req("TOOLS-9")
def test_a_wrong_version_exits_with_2_and_names_each_change(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = written(tmp_path / "new.json", manifest(version="1.0.1", ttl_seconds=60, side_effect="Read", timeout_ms=9000))

    assert diff(old, new) == 2
    said = capsys.readouterr().out
    assert "1.0.0 -> 1.0.1 is wrong: the numbers allow patch, and 2 of 3 changes need more:" in said
    assert "side_effect.raised at /side_effect needs major" in said
    assert "ttl.added at /ttl_seconds needs minor" in said


def test_who_reads_no_further_sees_no_trace_of_python(old: Path, tmp_path: Path) -> None:
    new = written(tmp_path / "new.json", manifest(version="1.1.0", ttl_seconds=60))
    read, write = os.pipe()
    os.close(read)  # as after `| head`

    command = [sys.executable, "-m", "unitools", "diff", str(old), str(new)]
    done = subprocess.run(command, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)

    assert (done.returncode, done.stderr) == (1, "")


def test_a_version_that_is_not_newer_exits_with_2(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(old, old) == 2
    assert "1.0.0 -> 1.0.0 is wrong: the new version is not newer." in capsys.readouterr().out


def test_programs_get_json(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = written(tmp_path / "new.json", manifest(version="1.0.1", ttl_seconds=60))

    assert diff(old, new, "--json") == 2
    answer = json.loads(capsys.readouterr().out)
    assert (answer["needed"], answer["given"], answer["right"]) == ("minor", "patch", False)
    assert answer["old"] == {"id": "sample.tools.echo", "version": "1.0.0"}
    assert [each["kind"] for each in answer["offending"]] == ["ttl.added"]
    assert answer["changes"] == answer["offending"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is not JSON"),
        ('{"version": NaN}', "cannot be read: NaN and Infinity are not in JSON"),
        ('{"version": 1, "version": 2}', "cannot be read: an object has the same key twice"),
        ("[" * 100_000, "cannot be read: this is nested too deep"),
        ("[]", "is not a manifest"),
        ({"id": "a.b.c"}, "is not a manifest"),
        ({"version": 1}, "is not a manifest"),
        ({"version": "1.0"}, "'1.0' is not a version"),
    ],
)
def test_what_is_no_manifest_exits_with_1_and_a_sentence(
    old: Path, tmp_path: Path, content: Any, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = written(tmp_path / "new.json", content)

    assert diff(old, new) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.req("TOOLS-9")
def test_a_saved_answer_of_the_hub_is_told_how_to_become_a_manifest(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {"ok": True, "data": {"version": "1.0.0", "manifest": manifest()}}
    saved = written(tmp_path / "my answer.json", answer)

    assert diff(saved, old) == 1
    assert f"jq .data.manifest '{saved}' > manifest.json" in capsys.readouterr().err
    assert diff(old, written(tmp_path / "data.json", answer["data"])) == 1
    assert "jq .manifest " in capsys.readouterr().err


def test_a_file_that_cannot_be_read_exits_with_1(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"version": "\xe9"}')

    assert diff(old, tmp_path / "none.json") == 1
    assert diff(old, tmp_path) == 1
    assert diff(old, tmp_path / "latin.json") == 1
    assert capsys.readouterr().err.count("\n") == 3


@pytest.mark.parametrize(
    "arguments", [[], ["diff"], ["diff", "a.json"], ["differ", "a", "b"], ["diff", "a", "b", "--yaml"]]
)
def test_a_wrong_command_line_exits_with_1_because_2_is_an_answer(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)

    assert exit_.value.code == 1
    assert "usage: unitools" in capsys.readouterr().err


def test_it_needs_nothing_but_the_standard_library(old: Path) -> None:
    """An author runs it without the hub, and without site-packages."""
    command = [sys.executable, "-S", "-E", "-m", "unitools", "diff", str(old), str(old)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (2, "")
    assert "not newer" in done.stdout

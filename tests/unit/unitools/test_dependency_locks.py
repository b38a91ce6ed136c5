"""Dependency locks: is a lock read strictly, and is it the same however it was written?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from unitools.command import main
from unitools.dependency_locks import (
    LockedPackage,
    compute_lock_digest,
    format_constraint,
    normalize_lock_lines,
    read_lock_line,
    read_lock_lines,
)

if TYPE_CHECKING:
    from pathlib import Path

A, B = "a" * 64, "b" * 64


@pytest.mark.req("SVC-9")
def test_a_line_is_a_package_a_version_and_its_files() -> None:
    assert read_lock_line(f"My_Lib[x,y] == 1.0.post1+cpu  --hash=sha256:{B} --hash=sha256:{A}") == LockedPackage(
        "my-lib", "1.0.post1+cpu", (A, B)
    )
    assert read_lock_line(f"a==1 ; python_version < '3.12'   and os_name=='nt' --hash=sha256:{A}").marker == (
        "python_version < '3.12' and os_name=='nt'"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a==1",
        f"a>=1 --hash=sha256:{A}",
        f"a==1.* --hash=sha256:{A}",
        f"a==1 --hash=sha256:{A[1:]}",
        f"a==1 --hash=sha256:{A.upper()}",
        f"a==1 --hash=md5:{A[:32]}",
        f"a==1 --hash=sha256:{A} --index-url=x",
        f"-r other.txt --hash=sha256:{A}",
        f"--find-links . a==1 --hash=sha256:{A}",
        f"a @ file:///a.whl --hash=sha256:{A}",
        f"a==1 --hash=sha256:{A}\nb==1 --hash=sha256:{A}",
        f"a==1 ; x\n--hash=sha256:{A}\n--index-url=y --hash=sha256:{A}",
        f"{'a' * 20_000}==1 --hash=sha256:{A}",
    ],
)
def test_nothing_else_is_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not name==version with the sha256 of its files\.$"):
        read_lock_line(text)


def test_a_lock_is_the_same_however_it_was_written() -> None:
    needed = f"b==2 \\\n    --hash=sha256:{B} \\\n    --hash=sha256:{A}\n    # via a\n"
    compiled = f"# by a program\n{needed}\nA==1 --hash=sha256:{A}  # the first\n"
    lines = [f"a==1 --hash=sha256:{A}", f"b==2 --hash=sha256:{A} --hash=sha256:{B}"]

    assert read_lock_lines(compiled) == lines
    assert compute_lock_digest(reversed(lines)) == compute_lock_digest([*read_lock_lines(compiled), lines[0]])
    assert compute_lock_digest(lines) != compute_lock_digest(lines[:1])
    assert normalize_lock_lines(normalize_lock_lines(lines)) == lines


def test_the_command_prints_what_stands_in_a_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"a==1 \\\n  --hash=sha256:{A}\n")

    assert main(["lock", str(file)]) == 0
    assert json.loads(capsys.readouterr().out) == [f"a==1 --hash=sha256:{A}"]


@pytest.mark.req("SVC-9")
def test_options_that_say_where_files_come_from_are_no_part_of_a_lock() -> None:
    """As pip-compile writes them where pip has an index of its own."""
    head = (
        "--index-url https://packages.example.org/simple\n--extra-index-url=https://x/simple\n--find-links /srv/wheels"
    )
    options = f"{head}\n--trusted-host x\n--no-binary a\n--only-binary :all:\n-i https://x\n-f .\n--no-index\n"

    assert read_lock_lines(f"{options}\na==1 \\\n    --hash=sha256:{A}\n") == [f"a==1 --hash=sha256:{A}"]


@pytest.mark.parametrize(
    "option", ["-r other.txt", "-c c.txt", "-e .", "--pre", "--config-settings x=y", "--indexurl x"]
)
def test_options_that_have_a_say_in_what_is_installed_are_refused_by_name(option: str) -> None:
    with pytest.raises(ValueError, match=rf"^The option {option.split()[0]} has a say in what is installed\."):
        read_lock_lines(f"{option}\na==1 --hash=sha256:{A}\n")


@pytest.mark.parametrize("text", [None, "a==1\n", f"-r other.txt\na==1 --hash=sha256:{A}\n"])
def test_the_command_says_why_it_cannot(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None) -> None:
    file = tmp_path / "requirements.txt"
    if text is not None:
        file.write_text(text)

    assert main(["lock", str(file)]) == 1
    assert str(file) in capsys.readouterr().err


@pytest.mark.req("BRING-2")
def test_a_constraint_is_written_from_what_was_read() -> None:
    assert format_constraint("My_Lib >=1, <2.0") == "my-lib>=1,<2.0"
    assert format_constraint("mcp~=1.9") == "mcp~=1.9"
    assert format_constraint("mcp == 1.*, !=1!1.2+x") == "mcp==1.*,!=1!1.2+x"


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "mcp",
        "mcp<2\n",
        "mcp\n<2",
        "mcp<2\n--requirement=x.txt",
        "zzz===\n--requirement=http://example.org/r.txt",
        "zzz===1",
        "zzz==1,===1",
        "mcp<2\u2028-r x",
        "mcp[cli]<2",
        "mcp<2; os_name == 'posix'",
        "mcp @ https://example.org/mcp.whl",
        "./mcp<2",
        "--index-url=x",
        "mcp<2 --hash=sha256:00",
        "mcp<x y",
    ],
)
def test_a_constraint_that_says_more_than_versions_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no constraint"):
        format_constraint(text)

"""Anchor stores: how checkpoints of the global log are kept out of the hub's reach, without anybody's help.

In a file (append-only, on another host's disk or one that is written once) or in a git repository, with an optional push. A new one
is put there only when the log continues the last one, as a witness would have it; all of them can be compared with the log later.
"""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evidence.verify import notes
from evidence.verify.problems import InvalidEvidence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GIT_TIMEOUT_S = 60
GIT_FILE = "checkpoint"
TAIL = 1 << 16
WHO = ("-c", "user.name=toolhub", "-c", "user.email=toolhub@localhost", "-c", "commit.gpgsign=false")


def append_to_file(path: Path, note: str) -> None:
    """One line of JSON, on the disk when this returns. A line that a crash left unfinished is ended first."""
    line = json.dumps({"at": datetime.now(UTC).isoformat(timespec="seconds"), "note": note}) + "\n"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, (b"\n" if torn else b"") + line.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def commit_to_git(repository: Path, note: str, *, push: str) -> None:
    """Write the note into the repository and commit it; push to the remote ``push`` if one is given."""
    (repository / GIT_FILE).write_text(note)
    _git(repository, "add", "--", GIT_FILE)
    checkpoint = notes.Checkpoint.parse(notes.split_note(note)[0])
    if _git(repository, "status", "--porcelain", "--", GIT_FILE):
        message = f"{checkpoint.origin}: {checkpoint.size} leaves"
        _git(repository, *WHO, "commit", "--quiet", "-m", message, "--", GIT_FILE)
    if push:
        _git(repository, "push", "--quiet", push, "HEAD")


def _git(repository: Path, *arguments: str) -> str:
    """Raises ``OSError`` with a sentence: hooks and configuration of the repository are its operator's."""
    env = os.environ | {"GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments],
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=GIT_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(None, f"git {arguments[0]} took longer than {GIT_TIMEOUT_S} s") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"git ended with {done.returncode}"]
        raise OSError(None, f"git: {said[-1]}")
    return done.stdout.strip()


def read_last_from_file(path: Path) -> str:
    """The newest note; empty when there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
        lines = file.read().decode("utf-8", "replace").split("\n")
    return next((note for note in map(_note_in, reversed(lines)) if note), "")


def read_last_from_git(repository: Path) -> str:
    commit = _git(repository, "rev-list", "-n", "1", "--all", "--", GIT_FILE)
    return _git(repository, "show", f"{commit}:{GIT_FILE}") + "\n" if commit else ""


def _note_in(line: str) -> str:
    """Empty for what is no line of ours: others may have written there, and a crash may have torn one."""
    try:
        note = str(json.loads(line)["note"])
        notes.split_note(note)
    except (ValueError, KeyError, TypeError, InvalidEvidence):
        return ""
    return note


def iter_file_notes(path: Path) -> Iterator[str]:
    """The notes in the order in which they came."""
    with path.open() as file:
        yield from filter(None, map(_note_in, file))


def iter_git_notes(repository: Path) -> Iterator[str]:
    """The notes of all commits of the current branch, the oldest first."""
    for commit in _git(repository, "log", "--reverse", "--format=%H", "--", GIT_FILE).split():
        note = _git(repository, "show", f"{commit}:{GIT_FILE}") + "\n"
        try:
            notes.split_note(note)
        except InvalidEvidence:
            continue
        yield note

"""Build steps: how a lock becomes a folder of this host.

Installed beside its place, held against the lock and against what the packages say of themselves, byte-compiled, put in
place. Nothing of a package is run: wheels are unpacked, and compiling reads only.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from importlib.metadata import Distribution, distributions
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from registry.dependencies import failures, npm, pip, store
from registry.dependencies.failures import CannotBuild
from registry.dependencies.process_runner import TookTooLong, run_program
from registry.dependencies.target import find_compiler, marker_holds
from unitools.dependency_locks import LockedPackage, compute_lock_digest, normalize_name, read_lock_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from registry.dependencies.pip import ProgressHooks

MAX_BYTES = 2 * 2**30
LEAST_FREE = 64 * 2**20
COMPILE_WITHIN_S = 15 * 60
SIZE_EVERY_S = 5.0
MOUNT = "/deps"  # where the box has it; traces name it instead of this host's path
RESERVED = ("sandbox", "unitools")


class _Watched:
    """Beats on, and looks at the size now and then."""

    def __init__(self, talk: ProgressHooks, *folders: Path) -> None:
        self.talk, self.folders, self.due = talk, folders, time.monotonic() + SIZE_EVERY_S

    def beat(self) -> None:
        self.talk.beat()
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + SIZE_EVERY_S
            check_size(*self.folders)
            check_room()


def check_size(*folders: Path) -> int:
    size = sum(map(store.folder_size, folders))
    if size > MAX_BYTES:
        raise CannotBuild(failures.too_large(MAX_BYTES))
    return size


def resolve_requirements(
    requirements: Sequence[str], *, talk: ProgressHooks, constraints: Sequence[str] = ()
) -> list[str]:
    """The lines of a lock."""
    with _disk_trouble(), store.make_work_folder() as work:
        watched = pip.ProgressHooks(talk.say, _Watched(talk, work).beat)
        return pip.resolve_lock(requirements, work=work, talk=watched, constraints=constraints)


def build_folder(lines: Sequence[str], requirements: Sequence[str], *, talk: ProgressHooks) -> tuple[Path, int]:
    """The folder of a lock, made unless it is there already, and its size."""
    there = store.folder_of_lock(compute_lock_digest(lines))
    if there.is_dir():
        if not npm.is_npm_lock(lines):
            check_complete(there, requirements)  # it may have been made for another tool
        return there, store.folder_size(there)
    with _disk_trouble(), store.make_work_folder() as work, store.make_work_folder() as site:
        check_room()
        watched = pip.ProgressHooks(
            talk.say, _Watched(talk, work, site).beat
        )  # pip unpacks in the one, and moves to the other
        talk.say("Installing from the lock")
        if npm.is_npm_lock(lines):
            npm.install_packages(lines, into=site, work=work, talk=watched)
        else:
            _install_wheels(lines, requirements, site, work, watched)
        size = check_size(site)
        talk.say("Putting it in place")
        return store.put_in_place(site, compute_lock_digest(lines), beat=talk.beat), size


def _install_wheels(
    lines: Sequence[str], requirements: Sequence[str], site: Path, work: Path, talk: ProgressHooks
) -> None:
    pip.install_lock(entries_for_here(lines), into=site, work=work, talk=talk)
    shutil.rmtree(site / "bin", ignore_errors=True)  # scripts that name the hub's own Python
    check_complete(site, requirements)
    check_names(site)
    talk.say("Compiling")
    compile_all(site, work=work, talk=talk)


@contextlib.contextmanager
def _disk_trouble() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotBuild(failures.os_error_failure(error)) from error


def check_room() -> None:
    if shutil.disk_usage(store.store_root()).free < LEAST_FREE:
        raise CannotBuild(failures.disk_full())


def entries_for_here(lines: Sequence[str]) -> list[LockedPackage]:
    """The entries whose marker holds for the sandbox."""
    return [each for each in map(read_lock_line, lines) if marker_holds(each.marker)]


def check_complete(site: Path, requirements: Sequence[str]) -> None:
    """Everything that is there names what it needs; all of that must be there, too. Only what is asked by name of an extra counts
    beside that. A lock that was made for another Python would otherwise fail in the middle of a call.
    """
    found = {normalize_name(each.name): each for each in distributions(path=[str(site)]) if each.name}
    missing = [
        f"{by} needs: {name}"
        for by, name in _needed(found, [re.sub(r"\s*--hash=\S+", "", each) for each in requirements])
    ]
    if missing:
        raise CannotBuild(failures.incomplete_lock(missing))


def _needed(found: dict[str, Distribution], requirements: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What is needed by whom and is not there."""
    pending = [("the manifest", Requirement(each)) for each in requirements]
    pending += [(name, Requirement(name)) for name in found]
    seen: set[tuple[str, str]] = set()
    while pending:
        by, wanted = pending.pop()
        name = normalize_name(wanted.name)
        if name not in found or not wanted.specifier.contains(found[name].version, prereleases=True):
            yield by, f"{name}{wanted.specifier}"
            continue
        for extra in ("", *wanted.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                pending += [(name, each) for each in _required_by(found[name], extra)]


def _required_by(distribution: Distribution, extra: str) -> Iterator[Requirement]:
    for text in distribution.requires or ():
        with contextlib.suppress(InvalidRequirement):  # of a package that pip takes all the same
            wanted = Requirement(text)
            if marker_holds(str(wanted.marker or ""), extra=extra):
                yield wanted


def check_names(site: Path) -> None:
    """What the box itself imports is nobody else's."""
    taken = [name for name in RESERVED if (site / name).exists() or (site / f"{name}.py").exists()]
    if taken:
        raise CannotBuild(failures.reserved_module(taken))


def compile_all(site: Path, *, work: Path, talk: ProgressHooks) -> None:
    """Byte code that is never held against its source: nobody can write there. A file that is no Python of ours stays as it is."""
    python = find_compiler()
    if not python:
        talk.say("Not compiled: this host has no Python of the sandbox's version; first imports take longer")
        return
    command = [python, "-I", "-m", "compileall", "-qq", "--invalidation-mode", "unchecked-hash"]
    command += ["-s", str(site), "-p", MOUNT, str(site)]
    try:
        run_program(
            command,
            env=pip.pip_environment(work),
            cwd=work,
            within_s=COMPILE_WITHIN_S,
            hear=lambda _: None,
            beat=talk.beat,
        )
    except TookTooLong as error:
        raise CannotBuild(failures.too_slow(COMPILE_WITHIN_S)) from error

"""Failures: what went wrong with dependencies, in a sentence that a person can act on."""

from __future__ import annotations

import errno
import re
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from registry.dependencies.target import target_machine, target_name

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_MESSAGE = 400
SET_INDEX = (
    "On the workers, set TOOLHUB_PACKAGE_INDEX to an index that they reach (HTTPS_PROXY where there is a proxy), or "
    "TOOLHUB_WHEELHOUSE to a folder of wheels; then retry."
)
PAUSES_S = (30.0, 120.0, 600.0)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Failure:
    """``code`` is for programs and evidence; the texts are for people. ``output``: the last that a program of others has said."""

    code: str
    message: str
    remedy: str
    output: str = ""

    def to_json(self) -> dict[str, str]:
        said = asdict(self)
        return said if self.output else {name: text for name, text in said.items() if name != "output"}


class CannotBuild(Exception):
    """It cannot be done as things are: ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


class CannotBuildYet(CannotBuild):
    """It cannot be done now, and that may be no fault of the version: it is put off, and ``failure`` is believed after so many
    ``attempts``."""

    def __init__(self, failure: Failure, *, attempts: int) -> None:
        self.attempts = attempts
        super().__init__(failure)


def pause_after(times: int) -> timedelta:
    """Before what could not be done so often is tried again."""
    return timedelta(seconds=PAUSES_S[min(times, len(PAUSES_S)) - 1])


def without_addresses(text: str) -> str:
    """Neither an index with its credentials nor a path of this host is anybody's business."""
    text = re.sub(r"\b[a-z][a-z0-9+.-]*://\S+", "(address)", text)
    return re.sub(r"(?<![\w.])/[\w./+-]+", "(path)", text)[:MAX_MESSAGE]


def disk_full() -> Failure:
    return Failure(
        "disk_full",
        "The disk of the host is full.",
        "Make room where TOOLHUB_DEPENDENCY_DIR lies, or set it to another disk; then retry.",
    )


def os_error_failure(error: OSError) -> Failure:
    if error.errno in _FULL:
        return disk_full()
    return Failure(
        "store_unusable",
        f"The folder for dependencies cannot be written: {error.strerror or type(error).__name__}.",
        "Set TOOLHUB_DEPENDENCY_DIR to a folder that the worker may write to; then retry.",
    )


def index_silent() -> Failure:
    return Failure("index_unreachable", "The package index does not answer.", SET_INDEX)


def index_refuses(status: str) -> Failure:
    return Failure(
        "index_refused",
        f"The package index refuses the hub ({status}).",
        "Put valid credentials into TOOLHUB_PACKAGE_INDEX, or pip's configuration, of the workers; then retry.",
    )


def no_wheel(requirement: str) -> Failure:
    return Failure(
        "no_wheel",
        f"{requirement} has no wheel for {target_name()}, and nothing is built from source here.",
        "Name a version that has one, or build the wheel yourself and add it to the index or the wheelhouse.",
    )


def named_by_address() -> Failure:
    return Failure(
        "address",
        "A package, or one that it needs, is named by an address; what lies there may be anything, and is not fetched.",
        "Do without that package, or add one to the index or the wheelhouse that names what it needs as name and version.",
    )


def unknown_version(requirement: str, others: str) -> Failure:
    listed = [each.strip() for each in others.split(",") if each.strip()]
    return Failure(
        "unknown_version",
        f"{requirement} does not exist as a wheel for {target_name()}; the newest that do: {', '.join(listed[-5:])}.",
        "Name one of these versions, or add the wheel to the index or the wheelhouse.",
    )


def unknown_package(requirement: str) -> Failure:
    return Failure(
        "unknown_package",
        f"No index that this hub may ask has {requirement}.",
        f"Correct the name. If it is right: {SET_INDEX[0].lower()}{SET_INDEX[1:]}",
    )


def hash_mismatch(name: str) -> Failure:
    return Failure(
        "hash_mismatch",
        f"The file of {name} is not the one that the lock names.",
        f"Either the lock was made for something else than {target_name()}, or the index serves another file than it did: "
        "find out which, and submit a new version with the right lock.",
    )


def version_conflict(said: Sequence[str]) -> Failure:
    why = "; ".join(without_addresses(line.strip()) for line in said if line.strip())
    return Failure(
        "conflict",
        f"The versions do not fit each other: {why}."[:MAX_MESSAGE] if why else "The versions do not fit each other.",
        "Name versions that fit, and submit a new version of the tool.",
    )


def incomplete_lock(missing: Sequence[str]) -> Failure:
    return Failure(
        "incomplete",
        f"The lock leaves out what {'; '.join(missing[:5])}."[:MAX_MESSAGE],
        "Add it to `dependencies` (or to `dependency_lock`) and submit a new version of the tool.",
    )


def reserved_module(names: Sequence[str]) -> Failure:
    return Failure(
        "reserved_name",
        f"A package brings a module that belongs to the sandbox: {', '.join(names)}.",
        "Do without that package.",
    )


SET_REGISTRY = (
    "On the workers, set TOOLHUB_NPM_REGISTRY to a registry of npm that they reach; one in a network of your own is named in "
    "TOOLHUB_OUTBOUND_NETWORKS, too. Then retry."
)


def registry_silent() -> Failure:
    return Failure("index_unreachable", "The registry of npm does not answer as one.", SET_REGISTRY)


def registry_refused(why: str) -> Failure:
    return Failure("index_refused", f"The registry of npm is not to be had: {without_addresses(why)}", SET_REGISTRY)


def unknown_npm_package(name: str) -> Failure:
    return Failure(
        "unknown_package",
        f"The registry of npm has no file of {name}.",
        f"Correct the lock. If it is right: {SET_REGISTRY[0].lower()}{SET_REGISTRY[1:]}",
    )


def needs_build(name: str, why: str) -> Failure:
    return Failure(
        "install_script",
        f"{name} cannot be installed without running something of it: {why}."[:MAX_MESSAGE],
        "Nothing of a package is run to install it. Use a version or another package that does without, and submit a new version.",
    )


def archive_unfit(name: str, why: str) -> Failure:
    return Failure(
        "archive_unfit",
        f"The file of {name} is not taken. {why}"[:MAX_MESSAGE],
        "Such a file was not made by npm: use another version of the package, and tell its author.",
    )


def other_machine(name: str) -> Failure:
    return Failure(
        "other_machine",
        f"{name} runs on other machines only than the sandbox, which is Linux on {target_machine()} with glibc.",
        "Use another package, or a lock that has it as optional.",
    )


def too_large(most: int) -> Failure:
    return Failure(
        "too_large",
        f"The dependencies need more than {most // 2**20:,} MiB.",
        "Use smaller packages, or split the tool.",
    )


def too_many_files(most: int) -> Failure:
    return Failure(
        "too_many_files",
        f"The dependencies have more than {most:,} files and folders.",
        "Use smaller packages, or split the tool.",
    )


def too_slow(within_s: float) -> Failure:
    return Failure("too_slow", f"It was not done within {within_s / 60:.0f} minutes.", "Retry. " + SET_INDEX)


def registry_slow(within_s: float) -> Failure:
    return Failure("too_slow", f"It was not done within {within_s / 60:.0f} minutes.", "Retry. " + SET_REGISTRY)


def worker_lost(times: int) -> Failure:
    return Failure(
        "worker_lost",
        f"The worker was lost {times} times while it was at it.",
        "Look at the workers' logs, memory and disk; then retry.",
    )


def not_probed() -> Failure:
    return Failure(
        "not_probed",
        "What others have written is tried before its version is reviewed, and this process has no sandbox to try it in.",
        "Let a worker do it (`manage.py serve`, or a worker of the production shape); then retry.",
    )


def unexpected_failure() -> Failure:
    return Failure("other", "Something went wrong on our side.", "See the worker's log; then retry.")


def pip_failure(lines: Sequence[str]) -> Failure:
    errors = [line.strip().removeprefix("ERROR: ") for line in lines if line.strip().startswith("ERROR:")]
    said = without_addresses(errors[-1]) if errors else "it said nothing"
    return Failure("other", f"pip could not do it: {said}", "See the worker's log; then retry.")

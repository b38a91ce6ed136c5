"""Server probe: whether a server of others starts, and lists what its manifest pins, before anybody reviews the version.

It is started from its lock in a box that is used once, without a network, files or secrets, asked for its whole list and ended. One
that keeps files finds none. What it says is held against the listing that was shipped with the manifest.
"""

from __future__ import annotations

import io
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from invocations.decide.profiles import give_kept_files
from invocations.problems import ImageMissing
from invocations.run.staged_packages import find_run_image, stage_package
from invocations.sandbox.base import Limits, Profile, RunStatus, SandboxCall
from invocations.sandbox.factory import current_sandbox
from invocations.sandbox.results import PROCESSOR
from kernel.database.connections import release_connection
from kernel.problems import Problem
from registry.dependencies.failures import CannotBuild, CannotBuildYet, Failure
from registry.dependencies.states import MAX_ATTEMPTS
from unitools.capabilities import Capabilities
from unitools.mcp_listings import (
    LISTING_FILE,
    MAX_LISTING_BYTES,
    MAX_LISTING_DEPTH,
    Listing,
    ListingUnfit,
    describe_drift,
    show_drift,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocations.sandbox.base import RunOutcome
    from registry.models import ToolVersion
    from unitools.manifest import Manifest

WALL_MS, CPU_S = 60_000, 20  # beside calls, which go first, the host has little time for it
BEAT_S = 0.5
SLOW_ATTEMPTS = 2  # a host that is loaded is slow, too
OUTPUT_BYTES = 2048
_NOT_ITS_DOING = {
    RunStatus.START_FAILED: "No box could be started to try it in.",
    RunStatus.LOST: "The box in which it was tried was lost.",
    RunStatus.CANCELLED: "The box in which it was tried was ended.",
}
PLACEHOLDER = "not-a-secret"  # many servers only look whether there is a value
CONTEXT = {"started_at": "2026-01-01T00:00:00+00:00", "seed": "0"}

_SUBMIT = "and bring it again."
_NEEDS_PROGRAM = (
    "The server needs the program {0}, which it is not given: bring it with --program {0} (in the console: Programs), which names the "
    "image of the sandbox that has it. A hub comes with git; an operator names others in TOOLHUB_SANDBOX_IMAGES."
)
_REMEDIES: tuple[tuple[str, str], ...] = (
    (
        r"Bad git executable|\bgit\b.{0,80}(?:not found|No such file)|GIT_PYTHON",
        _NEEDS_PROGRAM.format("git"),
    ),
    (
        r"\bspawn(?:Sync)? ([\w./+-]{1,60}) (?:ENOENT|EACCES|EPERM)",
        _NEEDS_PROGRAM,
    ),
    (
        r"Cannot find (?:module|package) '([\w@./:-]{1,100})'",
        "The module {0} did not come along: make the lock anew with npm, and bring the server again; or use a version that has it.",
    ),
    (
        r"Unsupported engine|requires? Node(?:\.js)? ?(?:version )?(>?=?v?[\w. ]{1,20})",
        "The server wants another Node.js than the sandbox's: use another version of it, or an image of your own "
        "(TOOLHUB_SANDBOX_IMAGES).",
    ),
    (
        r"(?:No such file or directory|Operation not permitted|Permission denied): '([\w.+-]{1,60})'",
        _NEEDS_PROGRAM,
    ),
    (
        r"ModuleNotFoundError: No module named '([\w.]{1,100})'",
        f"The module {{0}} did not come along: add the package that has it to dependencies {_SUBMIT}",
    ),
    (
        r"has no attribute|cannot import name|unexpected keyword argument|ImportError",
        "The server was written for an older version of something that it uses, often of the package mcp: add a constraint, "
        f"for example --constraint 'mcp<2' (in the console: Constraints; in the manifest: dependency_constraints), {_SUBMIT}",
    ),
    (
        r"KeyError: '([A-Z][A-Z0-9_]{1,60})'|\b([A-Z][A-Z0-9_]{2,60}) (?:environment variable|is not set|is required|must be set)",
        "The server wants {0} in its environment: name it (in the console: Environment, or Secrets; in the manifest: "
        f"implementation.server.environment) {_SUBMIT}",
    ),
    (
        r"the following arguments are required: ([\w ,<>-]{1,80})|usage: ",
        "The server wants other arguments: name them (in the console: Arguments; in the manifest: "
        f"implementation.server.arguments) {_SUBMIT}",
    ),
)
_SPENT = (
    "Give it arguments or an environment with which it prepares less when it starts, such as no index and no model, "
    f"{_SUBMIT} Or use another version of it."
)
_OTHERWISE = (
    f"Read what the server says below. Correct its arguments, environment, dependencies or constraints, {_SUBMIT}"
)


def probe_server(version: ToolVersion, folder: Path, beat: Callable[[], None]) -> None:
    """Raises :class:`CannotBuild` with what a person can do; :class:`CannotBuildYet` where the hub's own trouble may be the cause.
    ``beat`` is called about twice a second, and may end it."""
    package, image = stage_probe(version)
    call = build_probe(version.view, package, folder, server=version.view.server_start)
    pinned = _read_pinned(package, version.view.package)
    programs = Capabilities.from_json({"proc": version.view.capabilities.get("proc", [])})
    profile = Profile(build_limits(version.view.limit("memory_bytes")), programs, isolation="single")
    profile = give_kept_files(profile, version.view.keeps)
    outcome = run_alone(replace(call, image=image), profile, beat)
    if outcome.status is not RunStatus.OK:
        raise build_error(outcome)
    try:
        found = Listing.from_json(outcome.value)
    except ListingUnfit as error:
        raise CannotBuild(listing_unfit(str(error))) from error
    if drift := describe_drift(pinned, found, tools=[version.view.origin["tool"]]):
        raise CannotBuild(listing_differs(drift, show_drift(pinned, found)))
    if found.protocol != pinned.protocol:
        raise CannotBuild(listing_differs(f"The server speaks MCP {found.protocol[:40]}, not {pinned.protocol}."))


def stage_probe(version: ToolVersion) -> tuple[bytes, str]:
    """The package and the image of what is tried. Raises as :func:`probe_server`."""
    try:
        package, image = stage_package(version), find_run_image(version)
    except ImageMissing as problem:
        missing = Failure("image_missing", str(problem), problem.remedy)
        raise CannotBuildYet(missing, attempts=MAX_ATTEMPTS) from problem
    except Problem as problem:
        raise CannotBuild(
            Failure("package_changed", str(problem), problem.remedy or "Submit a new version.")
        ) from problem
    release_connection()
    return package, image


def build_probe(manifest: Manifest, package: bytes, folder: Path, **asked: Any) -> SandboxCall:
    """``asked``: what the box is to do, in place of a call. It has values that are no secrets."""
    settings = (manifest.config_schema or {}).get("properties", {})
    called: dict[str, Any] = {"module": "", "entry": ""} | asked
    return SandboxCall(
        name=f"probe-{uuid4().hex}",
        package=package,
        arguments=b"{}",
        context=CONTEXT | {"call_id": "probe", "tool_id": manifest.id, "tool_version": manifest.version},
        labels={"toolhub.tool": manifest.id},
        dependencies=folder,
        config={
            name: said["default"] for name, said in settings.items() if isinstance(said, dict) and "default" in said
        },
        secrets={each["name"]: PLACEHOLDER for each in manifest.secrets},
        **called,
    )


def _read_pinned(package: bytes, name: str) -> Listing:
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        return Listing.from_bytes(archive.read(f"{name}/{LISTING_FILE}"))


def build_limits(memory_bytes: int) -> Limits:
    """Of a server that is started to say what it lists."""
    return Limits(
        wall_ms=WALL_MS,
        cpu_s=CPU_S,
        memory_bytes=memory_bytes,
        result_bytes=2 * MAX_LISTING_BYTES,
        result_depth=MAX_LISTING_DEPTH,
    )


def run_alone(call: SandboxCall, profile: Profile, beat: Callable[[], None]) -> RunOutcome:
    """In a box that is used once."""
    sandbox = current_sandbox()
    with ThreadPoolExecutor(1, thread_name_prefix="probe") as threads:
        running = threads.submit(partial(sandbox.run, profile, call))
        try:
            while not wait([running], timeout=BEAT_S).done:
                beat()
        except BaseException:
            sandbox.kill(call.name)
            raise
        return running.result()


def build_error(outcome: RunOutcome) -> CannotBuild:
    """What is no word about the server is believed when it comes again."""
    if outcome.status in (RunStatus.BAD_RESULT, RunStatus.RESULT_TOO_LARGE):
        return CannotBuild(listing_unfit(outcome.error_message))
    failure = describe_failure(outcome)
    return judge_failure(failure, outcome.status)


def judge_failure(failure: Failure, status: RunStatus) -> CannotBuild:
    """Whether it is believed at once."""
    if status in _NOT_ITS_DOING:
        return CannotBuildYet(failure, attempts=MAX_ATTEMPTS)
    if status in (RunStatus.TIMED_OUT, RunStatus.LOAD_TIMED_OUT):
        return CannotBuildYet(failure, attempts=SLOW_ATTEMPTS)
    return CannotBuild(failure)


def describe_failure(outcome: RunOutcome) -> Failure:
    """Of a server that did not answer with its list: why, as far as it can be seen, and what is usually done about it."""
    output = tail_text(outcome.stderr or outcome.stdout)
    if outcome.status in _NOT_ITS_DOING:
        return not_tried(outcome)
    otherwise = _OTHERWISE
    match outcome.status:
        case RunStatus.TIMED_OUT if outcome.error_code == PROCESSOR:
            message = f"The server used {CPU_S} seconds of processor time, all that it has, before it listed its tools."
            otherwise = _SPENT
        case RunStatus.TIMED_OUT | RunStatus.LOAD_TIMED_OUT:
            message = f"The server did not list its tools within {WALL_MS // 1000} seconds."
        case RunStatus.OUT_OF_MEMORY:
            message = "The server did not list its tools within its memory."
        case _:
            message = f"The server does not start: {outcome.error_type} {outcome.error_message}".rstrip()
    remedy = _find_remedy(f"{output}\n{outcome.error_message}", otherwise)
    return Failure("server_unstartable", clean_text(message)[:400], remedy, output)


def not_tried(outcome: RunOutcome) -> Failure:
    message = f"{_NOT_ITS_DOING[outcome.status]} {outcome.error_message}".rstrip()
    return Failure("not_probed", clean_text(message)[:400], "See `manage.py doctor` on the workers; then retry.")


def listing_unfit(why: str) -> Failure:
    remedy = "Such a server cannot be brought: tell its author, or use another one."
    return Failure("listing_unfit", clean_text(why)[:400], remedy)


def listing_differs(why: str, differences: str = "") -> Failure:
    return Failure(
        "listing_differs",
        clean_text(why)[:400],
        "Look at what is different below. Where the machine decides it, such as its time zone, give the server an argument or an "
        "environment that does, and bring it again with `unitools bring mcp`. A list that changes with each start cannot be pinned.",
        tail_text(differences),
    )


def _find_remedy(text: str, otherwise: str) -> str:
    for pattern, remedy in _REMEDIES:
        if found := re.search(pattern, text):
            return remedy.format(next((each for each in found.groups() if each), ""))
    return otherwise


def tail_text(text: str) -> str:
    return clean_text(text.encode()[-OUTPUT_BYTES:].decode(errors="replace")).strip()


def clean_text(text: str) -> str:
    """The words of others: no control characters but line ends."""
    return "".join(each if each.isprintable() or each == "\n" else " " for each in text)

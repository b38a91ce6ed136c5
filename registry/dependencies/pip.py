"""Pip: how it finds and installs wheels for the sandbox, and what it means when it fails.

pip and not uv, which makes the locks of this repository: wherever Python is, pip is there too, and it is what operators have
set up for their index. It installs wheels only, so nothing of a package is run, and gets nothing of the hub's environment
but how to reach an index.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings

from registry.dependencies import failures, wheels_only
from registry.dependencies.failures import CannotBuild, Failure
from registry.dependencies.process_runner import TookTooLong, run_program
from registry.dependencies.target import PYTHON_TEXT, list_platforms
from unitools.dependency_locks import LockedPackage, format_constraint, normalize_name, read_lock_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

RESOLVE_WITHIN_S = 10 * 60
INSTALL_WITHIN_S = 30 * 60
# Of the environment; of pip's own settings, what says how an index is reached even where the hub says which one.
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
KEPT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *PROXIES,
    *(name.upper() for name in PROXIES),
)
TRANSPORT = (
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_PROXY",
    "PIP_TRUSTED_HOST",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_KEYRING_PROVIDER",
)
SOURCES = (
    *TRANSPORT,
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CONFIG_FILE"),
    *("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"),
)
COMMON = ("--only-binary", ":all:", "--no-cache-dir", "--no-input", "--progress-bar", "off", "--retries", "2")

# What pip says, and what people are told of it.
_TOLD: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\s*Collecting ([^\s;]+)"), "Looking for {}"),
    (re.compile(r"\s*Downloading (?:\S*/)?([^\s/]+\.whl(?: \(.+\))?)$"), "Downloading {}"),
    (re.compile(r"\s*Processing (?:\S*/)?([^\s/]+\.whl)"), "Taking {}"),
    (re.compile(r"Installing collected packages: (.+)"), "Installing {}"),
    (re.compile(r".*WARNING: Retrying "), "The index does not answer; trying again"),
)
_UNFOUND = re.compile(
    r"ERROR: Could not find a version that satisfies the requirement (\S+?)(?: \(from (?!versions).*?\))? \(from versions: (.*?)\)"
)
_SILENT = re.compile(
    r"connection error|Retrying \(Retry\(|Max retries exceeded|SSLError|ProxyError|ReadTimeoutError|timed out|\d Server Error"
)
_REFUSED = re.compile(r"\b(?:401|403|407|429) Client Error|HTTP error (?:401|403|407|429)")


class ProgressHooks:
    """What the program is given to talk to: ``say`` for people, ``beat`` about once a second, which may end it."""

    def __init__(self, say: Callable[[str], None], beat: Callable[[], None]) -> None:
        self.say, self.beat = say, beat

    def hear(self, line: str) -> None:
        for pattern, told in _TOLD:
            if found := pattern.match(line):
                self.say(told.format(*found.groups())[:200])
                return


def pip_environment(work: Path) -> dict[str, str]:
    """Where wheels come from and how they are reached; no secret of the hub."""
    chosen = bool(settings.TOOLHUB_PACKAGE_INDEX or settings.TOOLHUB_WHEELHOUSE)
    kept = (*KEPT, *(TRANSPORT if chosen else SOURCES))
    env = {name: os.environ[name] for name in kept if name in os.environ}
    env |= {"TMPDIR": str(work), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_COLOR": "1"}
    if chosen:
        env["PIP_CONFIG_FILE"] = os.devnull  # no second index beside the one that was chosen
    if settings.TOOLHUB_PACKAGE_INDEX:
        env["PIP_INDEX_URL"] = settings.TOOLHUB_PACKAGE_INDEX  # not an argument: it may hold credentials
    return env


def _sources() -> list[str]:
    if not settings.TOOLHUB_WHEELHOUSE:
        return []
    if not os.path.isdir(settings.TOOLHUB_WHEELHOUSE):  # noqa: PTH112  a text of the settings
        message = "TOOLHUB_WHEELHOUSE names what is no folder on this host."
        raise CannotBuild(Failure("wheelhouse_missing", message, "Correct it, or leave it empty; then retry."))
    return ["--no-index", "--find-links", settings.TOOLHUB_WHEELHOUSE]


def _target() -> Iterator[str]:
    yield from ("--implementation", "cp", "--python-version", PYTHON_TEXT, "--abi", f"cp{PYTHON_TEXT.replace('.', '')}")
    for tag in list_platforms():
        yield from ("--platform", tag)


def _pip(
    verb: str, *arguments: str, work: Path, talk: ProgressHooks, within_s: float, quietly: bool = False
) -> tuple[int, list[str]]:
    command = [sys.executable, "-I", "-u", wheels_only.__file__, verb, *COMMON, *_sources(), *_target(), *arguments]
    hear = (lambda _: None) if quietly else talk.hear
    try:
        return run_program(command, env=pip_environment(work), cwd=work, within_s=within_s, hear=hear, beat=talk.beat)
    except TookTooLong as error:
        raise CannotBuild(failures.too_slow(within_s)) from error


def resolve_lock(
    requirements: Sequence[str], *, work: Path, talk: ProgressHooks, constraints: Sequence[str] = ()
) -> list[str]:
    """The lines of a lock for these requirements: the one wheel of each package that would be installed here.

    ``constraints`` narrow which versions may come along, and bring nothing by themselves.
    """
    report = work / "report.json"
    asked = [re.sub(r"\s*--hash=\S+", "", each).strip() for each in requirements]
    arguments = [
        "--dry-run",
        "--ignore-installed",
        "--report",
        str(report),
        "--target",
        str(work / "nowhere"),
        *_constrained(constraints, work),
        "--",
        *asked,
    ]
    status, said = _pip("install", *arguments, work=work, talk=talk, within_s=RESOLVE_WITHIN_S)
    if status:
        raise CannotBuild(_why(said, work=work, talk=talk))
    found = [_locked(each) for each in json.loads(report.read_text())["install"]]
    _check_own_hashes(requirements, found)
    return sorted(each.line for each in found)


def _constrained(constraints: Sequence[str], work: Path) -> list[str]:
    if not constraints:
        return []
    listed = work / "constraints.txt"
    try:
        lines = [format_constraint(each) for each in constraints]  # never their own texts: pip finds options in lines
    except ValueError as error:
        remedy = "Correct dependency_constraints, and submit a new version of the tool."
        raise CannotBuild(Failure("constraint", str(error), remedy)) from error
    listed.write_text("\n".join(lines) + "\n")
    return ["--constraint", str(listed)]


def _locked(item: dict[str, Any]) -> LockedPackage:
    name, version = item["metadata"]["name"], item["metadata"]["version"]
    if item.get("is_direct") or not urlsplit(item["download_info"]["url"]).path.endswith(".whl"):
        raise CannotBuild(failures.named_by_address())
    digest = item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", "")
    try:
        return read_lock_line(f"{name}=={version} --hash=sha256:{digest}")
    except ValueError as error:
        message = f"The index names no SHA-256 for the file of {normalize_name(name)}."
        raise CannotBuild(Failure("no_hash", message, "Use an index that does, or a wheelhouse.")) from error


def _check_own_hashes(requirements: Sequence[str], found: Sequence[LockedPackage]) -> None:
    """A requirement may name hashes itself."""
    files = {each.name: set(each.hashes) for each in found}
    for requirement in requirements:
        wanted = set(re.findall(r"--hash=sha256:([0-9a-f]{64})", requirement))
        name = normalize_name(re.split(r"[\s\[=]", requirement, maxsplit=1)[0])
        if wanted and not files.get(name, set()) <= wanted:
            raise CannotBuild(failures.hash_mismatch(name))


def install_lock(lock: Sequence[LockedPackage], *, into: Path, work: Path, talk: ProgressHooks) -> None:
    """Exactly the files of the lock, and nothing beside them."""
    listed = work / "lock.txt"
    listed.write_text("\n".join(each._replace(marker="").line for each in lock) + "\n")
    arguments = ["--no-deps", "--require-hashes", "--no-compile", "--ignore-installed", "--no-warn-script-location"]
    arguments += ["--target", str(into), "--requirement", str(listed)]
    status, said = _pip("install", *arguments, work=work, talk=talk, within_s=INSTALL_WITHIN_S)
    if status:
        raise CannotBuild(_why(said, work=work, talk=talk))


def _why(said: list[str], *, work: Path, talk: ProgressHooks) -> Failure:
    """What pip's words mean. Where it only says that it found nothing, it is asked again, in detail, about that package."""
    text = "\n".join(said)
    if "No space left on device" in text or "Disk quota exceeded" in text or "File too large" in text:
        return failures.disk_full()
    if wheels_only.SAYS in text:
        return failures.named_by_address()
    if mismatch := re.search(r"DO NOT MATCH THE HASHES.*\n\s*([^\s=]+)", text):
        return failures.hash_mismatch(normalize_name(mismatch[1]))
    if refused := _REFUSED.search(text):
        return failures.index_refuses(refused[0])
    if "ResolutionImpossible" in text or "conflicting dependencies" in text:
        _, _, after = text.partition("The conflict is caused by:\n")
        return failures.version_conflict(after.partition("\n\n")[0].splitlines())
    if unfound := _UNFOUND.search(text):
        return _why_unfound(unfound[1], unfound[2], work=work, talk=talk)
    if _SILENT.search(text):
        return failures.index_silent()
    return failures.pip_failure(said)


def _why_unfound(requirement: str, others: str, *, work: Path, talk: ProgressHooks) -> Failure:
    name, _, version = requirement.partition("==")
    arguments = ["-vv", "--no-deps", "--dest", str(work), "--", requirement]
    _, said = _pip("download", *arguments, work=work, talk=talk, within_s=RESOLVE_WITHIN_S, quietly=True)
    text = "\n".join(said)
    if refused := _REFUSED.search(text):
        return failures.index_refuses(refused[0])
    if _SILENT.search(text):
        return failures.index_silent()
    spelled = re.escape(version) if version else r"\d[^-/\s]*"
    passed_over = re.compile(
        rf"Skipping link: (?:No sources permitted|none of the wheel's tags).*-{spelled}(?:-|\.tar|\.zip)"
    )
    if any(passed_over.search(line) for line in said):
        return failures.no_wheel(requirement)
    if others.strip() != "none":
        return failures.unknown_version(requirement, others)
    return failures.unknown_package(name)

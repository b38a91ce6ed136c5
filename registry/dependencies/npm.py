"""Npm packages: how the files of a lock of npm come from a registry into a folder of this host, without npm.

Each file is fetched by one request to the registry that the operator named, held against the SHA-512 of the lock and unpacked
by ourselves. Nothing of a package is run.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from django.conf import settings

from kernel.http.outbound import AddressRefused, OutboundFailed, OutboundTooLarge, send_request
from registry.dependencies import failures
from registry.dependencies.failures import CannotBuild
from registry.dependencies.npm_archives import (
    ABOUT,
    MAX_PACKED_BYTES,
    ArchiveSize,
    ArchiveUnfit,
    NeedsBuild,
    PackageCheck,
    list_needed,
    read_about,
    unpack_archive,
)
from registry.dependencies.store import remove_folder
from registry.dependencies.target import target_machine
from unitools.npm_locks import NAME, NpmPackage, read_npm_line
from unitools.npm_names import is_of_npm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from kernel.http.outbound import OutboundResponse
    from registry.dependencies.pip import ProgressHooks

AT_A_TIME = 4
FETCH_WITHIN_S = 120.0
TRIES, PAUSE_S = 3, 0.5  # as npm has it: of some hundred files one may be unlucky
INSTALL_WITHIN_S = 30 * 60  # of all packages together: nobody else builds on this host meanwhile
BEAT_S = 1.0
MAX_ALL_FILES, MAX_ALL_BYTES = 200_000, 2 * 2**30
_NAME = re.compile(NAME)
_CPU = {"x86_64": "x64", "aarch64": "arm64", "armv7l": "arm"}


def is_npm_lock(lines: Sequence[str]) -> bool:
    return any(map(is_of_npm, lines))


def install_packages(lines: Sequence[str], *, into: Path, work: Path, talk: ProgressHooks) -> None:
    """All packages of the lock that are for this machine, at their places. ``work``: an empty folder. Raises :class:`CannotBuild`."""
    packages, ends = _select_packages(lines), time.monotonic() + INSTALL_WITHIN_S

    def beat() -> None:
        talk.beat()
        if time.monotonic() >= ends:
            raise CannotBuild(failures.registry_slow(INSTALL_WITHIN_S))

    room, there = _Room(), list[NpmPackage]()
    threads = ThreadPoolExecutor(AT_A_TIME, "npm")
    try:
        for package, content in _fetch_all(packages, threads, work, beat):
            talk.say(f"Unpacking {package.name} {package.version}")
            if _unpack(package, content, into, room, beat):
                there.append(package)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)  # nobody waits for a registry that is slow
    _check_complete(there, into)


class _Room:
    """What all packages together may take."""

    def __init__(self) -> None:
        self.files = self.bytes = 0

    def take(self, size: ArchiveSize) -> None:
        self.files, self.bytes = self.files + size.files, self.bytes + size.bytes
        if self.files > MAX_ALL_FILES:
            raise CannotBuild(failures.too_many_files(MAX_ALL_FILES))
        if self.bytes > MAX_ALL_BYTES:
            raise CannotBuild(failures.too_large(MAX_ALL_BYTES))


def _check_complete(packages: Sequence[NpmPackage], into: Path) -> None:
    """All that a package needs is found from its place as Node.js looks for it: a server would else fail in the middle of a call. In
    which version is the author's word, for npm lets an application overrule what its packages ask for. ``packages``: those there."""
    missing = [
        f"{package.name} {package.version} needs: {name}"
        for package in packages
        for name in list_needed(read_about((into / package.place / ABOUT).read_bytes()))
        if not _is_found(name, into / package.place, into)
    ]
    if missing:
        raise CannotBuild(failures.incomplete_lock(missing))


def _is_found(name: str, folder: Path, into: Path) -> bool:
    """Beside the package, or beside one that it lies in."""
    if _NAME.fullmatch(name) is None:
        return False
    while True:
        if (folder / "node_modules" / name / "package.json").is_file():
            return True
        if folder == into:
            return False
        folder = folder.parent


def _select_packages(lines: Sequence[str]) -> list[NpmPackage]:
    """Those whose folder others lie in come before them."""
    cpu = _CPU.get(target_machine(), target_machine())
    found = sorted(map(read_npm_line, lines), key=lambda each: (each.place.count("/node_modules/"), each.place))
    if unfit := [each for each in found if not each.fits(cpu) and not each.is_optional]:
        raise CannotBuild(failures.other_machine(unfit[0].name))
    return [each for each in found if each.fits(cpu)]


def _fetch_all(
    packages: Sequence[NpmPackage], threads: ThreadPoolExecutor, work: Path, beat: Callable[[], None]
) -> Iterator[tuple[NpmPackage, bytes]]:
    """In their order, with few of them in memory at a time, and each file fetched once: one that has several places waits for its
    next in ``work``. A file may take longer than whoever builds is believed to be there, so it beats on meanwhile."""
    waiting, left = iter(packages), Counter(each.integrity for each in packages)
    asked: list[NpmPackage] = []
    coming: dict[str, Future[bytes]] = {}
    while True:
        for each in islice(waiting, AT_A_TIME - len(asked)):
            asked.append(each)
            if each.integrity not in coming and not _find_kept(each, work).exists():
                coming[each.integrity] = threads.submit(fetch_package, each)
        if not asked:
            return
        package = asked.pop(0)
        kept, future = _find_kept(package, work), coming.pop(package.integrity, None)
        beat()
        while future is not None and not wait([future], timeout=BEAT_S).done:
            beat()
        content = kept.read_bytes() if future is None else future.result()
        left[package.integrity] -= 1
        if not left[package.integrity]:
            kept.unlink(missing_ok=True)
        elif future is not None:
            kept.write_bytes(content)
        yield package, content


def _find_kept(package: NpmPackage, work: Path) -> Path:
    return work / f"{hashlib.sha256(package.integrity.encode()).hexdigest()}.tgz"


def fetch_package(package: NpmPackage) -> bytes:
    """The bytes that the lock names. Raises :class:`CannotBuild`."""
    address, headers = _build_request(package)
    try:
        answer = _ask_registry(address, headers)
    except AddressRefused as error:
        raise CannotBuild(failures.registry_refused("It is at an address that the hub does not ask.")) from error
    except OutboundFailed as error:
        raise CannotBuild(failures.registry_silent()) from error
    if answer.status == 404:
        raise CannotBuild(failures.unknown_npm_package(f"{package.name} {package.version}"))
    if answer.status != 200:
        raise CannotBuild(failures.registry_refused(f"It answered {answer.status}."))
    try:
        wanted = base64.b64decode(package.integrity.removeprefix("sha512-"), validate=True)
    except binascii.Error:
        wanted = b""
    if hashlib.sha512(answer.body).digest() != wanted:
        raise CannotBuild(failures.hash_mismatch(package.name))
    return answer.body


def _ask_registry(address: str, headers: dict[str, str]) -> OutboundResponse:
    """Again where nobody answered, or not as a registry does, as long as there is time."""
    ends, tries = time.monotonic() + FETCH_WITHIN_S, TRIES
    while True:
        try:
            return send_request(
                address,
                headers=headers,
                statuses=(200, 401, 403, 404, 429),
                most_bytes=MAX_PACKED_BYTES,
                within_s=ends - time.monotonic(),
            )
        except OutboundTooLarge:
            raise
        except OutboundFailed:
            tries -= 1
            if not tries or time.monotonic() + PAUSE_S >= ends:
                raise
        time.sleep(PAUSE_S)


def _build_request(package: NpmPackage) -> tuple[str, dict[str, str]]:
    """Credentials of the setting go into a header, and into no address."""
    parts = urlsplit(settings.TOOLHUB_NPM_REGISTRY)
    host = parts.netloc.rpartition("@")[2]
    headers: dict[str, str] = {}
    if parts.username:
        said = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(said.encode()).decode()}"
    file = f"{package.name.rpartition('/')[2]}-{package.version}.tgz"
    path = f"{parts.path.rstrip('/')}/{quote(package.name, safe='@/~')}/-/{quote(file, safe='~+')}"
    return urlunsplit((parts.scheme, host, path, "", "")), headers


def _unpack(package: NpmPackage, content: bytes, into: Path, room: _Room, beat: Callable[[], None]) -> bool:
    """Whether it is there, and not left out."""
    place, shown = into / package.place, f"{package.name} {package.version}"
    try:
        check = PackageCheck(package.name, package.version)
        unpack_archive(content, place, check_size=room.take, check_about=check.take, beat=beat)
        check.end()
    except NeedsBuild as error:
        if not package.is_optional:
            raise CannotBuild(failures.needs_build(shown, str(error))) from error
        remove_folder(place)
        return False
    except ArchiveUnfit as error:
        raise CannotBuild(failures.archive_unfit(shown, str(error))) from error
    return True

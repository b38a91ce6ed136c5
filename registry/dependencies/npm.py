"""Npm packages: how the files of a lock of npm come from a registry into a folder of this host, without npm.

Each file is fetched by one request to the registry that the operator named, held against the SHA-512 of the lock and unpacked
by ourselves. Nothing of a package is run.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from django.conf import settings

from kernel.http.outbound import AddressRefused, OutboundFailed, send_request
from registry.dependencies import failures
from registry.dependencies.failures import CannotBuild
from registry.dependencies.npm_archives import MAX_PACKED_BYTES, ArchiveUnfit, NeedsBuild, check_package, unpack_archive
from registry.dependencies.store import remove_folder
from registry.dependencies.target import target_machine
from unitools.npm_locks import is_of_npm, read_npm_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from registry.dependencies.pip import ProgressHooks
    from unitools.npm_locks import NpmPackage

AT_A_TIME = 4
FETCH_WITHIN_S = 120.0
_CPU = {"x86_64": "x64", "aarch64": "arm64", "armv7l": "arm"}


def is_npm_lock(lines: Sequence[str]) -> bool:
    return any(map(is_of_npm, lines))


def install_packages(lines: Sequence[str], *, into: Path, talk: ProgressHooks) -> None:
    """All packages of the lock that are for this machine, each at its place. Raises :class:`CannotBuild`."""
    packages = _select_packages(lines)
    with ThreadPoolExecutor(AT_A_TIME, "npm") as threads:
        try:
            for package, content in _fetch_all(packages, threads):
                talk.say(f"Unpacking {package.name} {package.version}")
                _unpack(package, content, into)
                talk.beat()
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _select_packages(lines: Sequence[str]) -> list[NpmPackage]:
    """Those whose folder others lie in come before them."""
    cpu = _CPU.get(target_machine(), target_machine())
    found = sorted(map(read_npm_line, lines), key=lambda each: (each.place.count("/node_modules/"), each.place))
    if unfit := [each for each in found if not each.fits(cpu) and not each.is_optional]:
        raise CannotBuild(failures.other_machine(unfit[0].name))
    return [each for each in found if each.fits(cpu)]


def _fetch_all(packages: Sequence[NpmPackage], threads: ThreadPoolExecutor) -> Iterator[tuple[NpmPackage, bytes]]:
    """In their order, with few of them in memory at a time."""
    waiting = iter(packages)
    asked: list[tuple[NpmPackage, Future[bytes]]] = []
    while True:
        asked += [(each, threads.submit(fetch_package, each)) for each in islice(waiting, AT_A_TIME - len(asked))]
        if not asked:
            return
        package, coming = asked.pop(0)
        yield package, coming.result()


def fetch_package(package: NpmPackage) -> bytes:
    """The bytes that the lock names. Raises :class:`CannotBuild`."""
    address, headers = _build_request(package)
    try:
        answer = send_request(
            address,
            headers=headers,
            statuses=(200, 401, 403, 404, 429),
            most_bytes=MAX_PACKED_BYTES,
            within_s=FETCH_WITHIN_S,
        )
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


def _unpack(package: NpmPackage, content: bytes, into: Path) -> None:
    place, shown = into / package.place, f"{package.name} {package.version}"
    try:
        check_package(unpack_archive(content, place), package.name, package.version)
    except NeedsBuild as error:
        if not package.is_optional:
            raise CannotBuild(failures.needs_build(shown, str(error))) from error
        remove_folder(place)
    except ArchiveUnfit as error:
        raise CannotBuild(failures.archive_unfit(shown, str(error))) from error

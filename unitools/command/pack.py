"""Command ``unitools pack FOLDER``: one archive of a package with its manifests, and its signature."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from unitools.capsules import CapsuleError, pack_capsule
from unitools.command.terminal import GOOD, CannotRun, format_install_hint, print_lines, read_json
from unitools.dependency_locks import read_lock_lines

if TYPE_CHECKING:
    import argparse

    from unitools.capsules import Capsule

SIGNATURE = ".dsse.json"  # behind the name of the capsule


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="FOLDER", help="of the package, with manifests/*.json inside")
    command.add_argument("--manifest", type=Path, action="append", metavar="FILE", help="instead of manifests/*.json")
    command.add_argument("--lock", type=Path, metavar="requirements.txt", help="with hashes, for third-party packages")
    command.add_argument("--readme", type=Path, metavar="FILE", help="instead of FOLDER/README.md")
    command.add_argument("--key", type=Path, metavar="private.pem", help="an Ed25519 key that signs it")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="instead of FOLDER's name with .capsule")


def run(options: argparse.Namespace) -> int:
    folder: Path = options.folder.resolve()
    manifests = options.manifest or sorted((folder / "manifests").glob("*.json"))
    if not manifests:
        raise CannotRun(f"{options.folder} has no manifests/*.json; name the manifests with --manifest.")
    readme = options.readme or folder / "README.md"
    try:
        capsule = pack_capsule(
            [read_json(path) for path in manifests],
            folder,
            lock=read_lock_lines(read_file_text(options.lock)) if options.lock else (),
            readme=read_file_text(readme) if options.readme or readme.is_file() else "",
        )
    except (CapsuleError, ValueError, TypeError) as error:
        raise CannotRun(f"{options.folder} cannot be packed: {error}") from error
    output = options.output or Path(f"{capsule.package}.capsule")
    signature = sign_with_key(capsule, options.key) if options.key else None
    write_file(output, capsule.data)
    print_lines(f"{output}  {capsule.digest}", *(f"  {each['id']} {each['version']}" for each in capsule.tools))
    if signature is not None:
        beside = output.with_name(output.name + SIGNATURE)
        write_file(beside, signature)
        print_lines(f"{beside}")
    return GOOD


def sign_with_key(capsule: Capsule, key: Path) -> bytes:
    check_can_sign()
    from unitools.capsules.signatures import sign  # noqa: PLC0415  the extra is needed for signing only

    try:
        return sign(capsule, read_file_bytes(key))
    except CapsuleError as error:
        raise CannotRun(f"{key}: {error}") from error


def check_can_sign() -> None:
    if find_spec("securesystemslib") is None or find_spec("cryptography") is None:
        raise CannotRun(f"Signatures need more packages: {format_install_hint('capsules')}")


def read_file_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CannotRun(f"{path} cannot be read: {error.strerror}.") from error


def read_file_text(path: Path) -> str:
    try:
        return read_file_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise CannotRun(f"{path} is not UTF-8 text.") from error


def write_file(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise CannotRun(f"{path} cannot be written: {error.strerror}.") from error

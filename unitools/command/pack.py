"""``unitools pack FOLDER``: one archive of a package with its manifests, and its signature?"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from unitools.capsules import CapsuleError, pack
from unitools.command.answers import GOOD, CannotRun, install, read_json, say
from unitools.locks import lines_of

if TYPE_CHECKING:
    import argparse

    from unitools.capsules import Capsule

SIGNATURE = ".dsse.json"  # behind the name of the capsule


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="FOLDER", help="of the package, with manifests/*.json inside")
    command.add_argument("--manifest", type=Path, action="append", metavar="FILE", help="instead of manifests/*.json")
    command.add_argument(
        "--lock", type=Path, metavar="requirements.txt", help="with hashes, for what it needs of others"
    )
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
        capsule = pack(
            [read_json(path) for path in manifests],
            folder,
            lock=lines_of(text_of(options.lock)) if options.lock else (),
            readme=text_of(readme) if options.readme or readme.is_file() else "",
        )
    except (CapsuleError, ValueError, TypeError) as error:
        raise CannotRun(f"{options.folder} cannot be packed: {error}") from error
    output = options.output or Path(f"{capsule.package}.capsule")
    signature = signed(capsule, options.key) if options.key else None
    keep(output, capsule.data)
    say(f"{output}  {capsule.digest}", *(f"  {each['id']} {each['version']}" for each in capsule.tools))
    if signature is not None:
        beside = output.with_name(output.name + SIGNATURE)
        keep(beside, signature)
        say(f"{beside}")
    return GOOD


def signed(capsule: Capsule, key: Path) -> bytes:
    check_can_sign()
    from unitools.capsules.signing import sign  # noqa: PLC0415  the extra is needed for signing only

    try:
        return sign(capsule, bytes_of(key))
    except CapsuleError as error:
        raise CannotRun(f"{key}: {error}") from error


def check_can_sign() -> None:
    if find_spec("securesystemslib") is None or find_spec("cryptography") is None:
        raise CannotRun(f"Signatures need more packages: {install('capsules')}")


def bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CannotRun(f"{path} cannot be read: {error.strerror}.") from error


def text_of(path: Path) -> str:
    try:
        return bytes_of(path).decode()
    except UnicodeDecodeError as error:
        raise CannotRun(f"{path} is not UTF-8 text.") from error


def keep(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise CannotRun(f"{path} cannot be written: {error.strerror}.") from error

"""Command ``unitools verify FILE.capsule``: whether it is whole, and whose it is. Nothing is asked over a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unitools.capsules import CapsuleError, open_capsule
from unitools.command.pack import SIGNATURE, check_can_sign, read_file_bytes
from unitools.command.terminal import GOOD, NO, CannotRun, print_lines

if TYPE_CHECKING:
    import argparse

    from unitools.capsules import Capsule


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("capsule", type=Path, metavar="FILE.capsule")
    command.add_argument(
        "--key", type=Path, action="append", metavar="public.pem", help="a key that may have signed it"
    )
    command.add_argument("--signature", type=Path, metavar="FILE", help=f"instead of FILE.capsule{SIGNATURE}")
    command.add_argument("--unsigned", action="store_true", help="check the capsule only, not who signed it")


def run(options: argparse.Namespace) -> int:
    if bool(options.key) is options.unsigned:
        raise CannotRun("Say whose signature is good with --key public.pem, or --unsigned to look at the capsule only.")
    data = read_file_bytes(options.capsule)
    try:
        capsule = open_capsule(data)
        lines = [f"{capsule.digest}", *(f"  {each['id']} {each['version']}" for each in capsule.tools)]
        by = "Whole; nobody's signature was looked at." if options.unsigned else _signer(capsule, options)
    except CapsuleError as error:
        print_lines(f"No ({type(error).__name__}): {error}")
        return NO
    print_lines(*lines, by)
    return GOOD


def _signer(capsule: Capsule, options: argparse.Namespace) -> str:
    check_can_sign()
    from unitools.capsules.signatures import read_public_key, verify  # noqa: PLC0415  the extra is needed for signatures only

    envelope = read_file_bytes(options.signature or options.capsule.with_name(options.capsule.name + SIGNATURE))
    keys = {}
    for path in options.key:
        try:
            keys[read_public_key(read_file_bytes(path))] = path
        except CapsuleError as error:
            raise CannotRun(f"{path}: {error}") from error
    signer = verify(capsule, envelope, keys)
    return f"Signed by {keys[signer]} ({signer.id})."

"""Command: what `toolhub-verify` checks and prints.

Exit status 0: all that was asked for is shown. 2: it is not, and each sentence says what is wrong and where. 1: it could not be
looked at, or the bundle cannot answer.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .bundle_verifier import verify_bundle
from .mirror import is_mirror, verify_mirror
from .notes import VerifierKey
from .problems import CannotTell, InvalidEvidence, MalformedEvidence

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_ARGUMENT_BYTES = 1 << 20


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        keys, witnesses = _keys(options.key), _keys(options.witness)
        older = [_read(path) for path in options.older]
        path: Path = options.bundle
        verify = verify_mirror if is_mirror(path) else verify_bundle
        report = verify(path, keys=keys, older=older, witnesses=witnesses)
    except (OSError, CannotTell, InvalidEvidence) as error:
        _say(f"toolhub-verify: {error}", error=True)
        return 1
    _say(json.dumps(report.as_json(), ensure_ascii=False) if options.json else "\n".join(report.lines()))
    return 0 if report.ok else 2 if report.findings else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="toolhub-verify",
        description="Verify evidence of a toolhub offline: an exported bundle (zip file or folder) or a mirror of a log.",
        epilog="Exit status: 0 all is shown, 2 something is wrong, 1 it could not be looked at.",
    )
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="the zip file, or a folder")
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="VKEY",
        help="trust this key of the log (a vkey, or a file of them)",
    )
    parser.add_argument(
        "--older", action="append", default=[], type=Path, metavar="FILE", help="a checkpoint that you kept from before"
    )
    parser.add_argument(
        "--witness",
        action="append",
        default=[],
        metavar="VKEY",
        help="this witness must have cosigned (a vkey, or a file of them)",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


def _keys(given: Sequence[str]) -> list[str]:
    keys = []
    for each in given:
        if each.count("+") >= 2 and not Path(each).is_file():
            keys.append(each)
        else:
            keys += [line for line in _read(Path(each)).decode(errors="replace").splitlines() if line]
    for key in keys:
        VerifierKey.parse(key)
    if given and not keys:
        raise MalformedEvidence(f"There is no key in {given[0]}.")
    return keys


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_ARGUMENT_BYTES + 1)
    if len(data) > MAX_ARGUMENT_BYTES:
        raise MalformedEvidence(f"{path} is larger than {MAX_ARGUMENT_BYTES} bytes.")
    return data


def _say(text: str, *, error: bool = False) -> None:
    stream = sys.stderr if error else sys.stdout
    stream.write(_printable(text) + "\n")


def _printable(text: str) -> str:
    """What a bundle says is shown, never obeyed: no escape sequences reach the terminal."""
    return "".join(each if each.isprintable() or each == "\n" else f"\\x{ord(each):02x}" for each in text)

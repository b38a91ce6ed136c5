"""How do commands come by the tools that a file holds?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unitools.command.answers import CannotRun, say
from unitools.loading import CannotLoad, Loaded, load
from unitools.publishing import publish
from unitools.refusals import RegistrationError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from unitools.publications import Publication
    from unitools.validating import Finding


def add_file(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE", help="a Python file that holds a Universe; it is imported")
    command.add_argument("--universe", default="", metavar="NAME", help="which one, where the file holds several")


def add_names(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--as", dest="group", default="", metavar="GROUP.PACKAGE", help="instead of the Universe's own"
    )
    command.add_argument("--version", default="", metavar="1.0.0", help="instead of the Universe's own")


def loaded_from(options: argparse.Namespace) -> Loaded:
    """What the file itself raises while it is imported ends the command with its place."""
    try:
        return load(options.file, options.universe)
    except (CannotLoad, RegistrationError) as error:
        raise CannotRun(str(error)) from error
    except Exception as error:  # it is the author's code
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        at = f" (line {last.tb_lineno} of {Path(last.tb_frame.f_code.co_filename).name})" if last else ""
        raise CannotRun(f"{options.file} cannot be imported: {type(error).__name__}: {error}{at}.") from error


def publication_of(loaded: Loaded, options: argparse.Namespace) -> Publication:
    try:
        return publish(loaded, group=options.group, version=options.version)
    except ValueError as error:
        raise CannotRun(
            f'{error} Give it to the Universe, Universe("acme.quotes", version="1.0.0"), or say --as.'
        ) from error


def tell(findings: Iterable[Finding]) -> None:
    for each in findings:
        place = " ".join(part for part in (each.tool, each.pointer) if part)
        say(f"{each.severity}: {place}: {each.message}" if place else f"{each.severity}: {each.message}")


def complain(findings: Iterable[Finding]) -> None:
    for each in findings:
        place = " ".join(part for part in (each.tool, each.pointer) if part)
        sys.stderr.write(f"{each.severity}: {place}: {each.message}\n")

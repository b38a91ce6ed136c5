"""How do commands come by the tools that a file holds?"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from unitools.command.answers import CannotRun
from unitools.command.findings import found_by_a_hub, lines_of
from unitools.loading import CannotLoad, Loaded, load
from unitools.publishing import publish
from unitools.refusals import RegistrationError

if TYPE_CHECKING:
    import argparse

    from unitools.publications import Publication


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
    """With what a hub would find in it."""
    try:
        made = publish(loaded, group=options.group, version=options.version)
    except ValueError as error:
        raise CannotRun(
            f'{error} Give it to the Universe, Universe("acme.quotes", version="1.0.0"), or say --as.'
        ) from error
    return judged(made)


def judged(made: Publication) -> Publication:
    return replace(made, findings=(*made.findings, *found_by_a_hub(made)))


def complain(made: Publication) -> None:
    for line in lines_of(made.findings, made.places):
        sys.stderr.write(f"{line}\n")

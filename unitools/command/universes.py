"""Universes: how commands come by the tools that a file holds."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from unitools.command.findings import find_hub_findings, format_findings
from unitools.command.terminal import CannotRun
from unitools.publisher import build_publication
from unitools.registration_errors import RegistrationError
from unitools.universe_loader import CannotLoad, LoadedUniverse, load_universe

if TYPE_CHECKING:
    import argparse

    from unitools.publications import Publication


def add_file_argument(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE", help="a Python file that holds a Universe; it is imported")
    command.add_argument(
        "--universe", default="", metavar="NAME", help="the Universe to use, if the file holds several"
    )


def add_name_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--as", dest="group", default="", metavar="GROUP.PACKAGE", help="instead of the Universe's own"
    )
    command.add_argument("--version", default="", metavar="1.0.0", help="instead of the Universe's own")


def load_given_universe(options: argparse.Namespace) -> LoadedUniverse:
    """What the file itself raises while it is imported ends the command with its place."""
    try:
        return load_universe(options.file, options.universe)
    except (CannotLoad, RegistrationError) as error:
        raise CannotRun(str(error)) from error
    except Exception as error:  # it is the author's code
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        at = f" (line {last.tb_lineno} of {Path(last.tb_frame.f_code.co_filename).name})" if last else ""
        raise CannotRun(f"{options.file} cannot be imported: {type(error).__name__}: {error}{at}.") from error


def build_checked_publication(loaded: LoadedUniverse, options: argparse.Namespace) -> Publication:
    """With what a hub would find in it."""
    try:
        made = build_publication(loaded, group=options.group, version=options.version)
    except ValueError as error:
        raise CannotRun(
            f'{error} Give it to the Universe, Universe("acme.quotes", version="1.0.0"), or say --as.'
        ) from error
    return add_hub_findings(made)


def add_hub_findings(made: Publication) -> Publication:
    return replace(made, findings=(*made.findings, *find_hub_findings(made)))


def print_findings(made: Publication) -> None:
    for line in format_findings(made.findings, made.places):
        sys.stderr.write(f"{line}\n")

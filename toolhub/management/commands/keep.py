"""Keep the evidence: seal facts into logs and what else the keeper does, until told to stop."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evidence.log import sealer
from evidence.log.signer import get_signer, make_signing_key
from kernel.observability import exposition, telemetry
from kernel.problems import Problem
from toolhub.instruments import make_instruments
from toolhub.loop_process import run_loop_process
from toolhub.loops import ProcessRole, select_loops
from toolhub.startup import refuse_foreign_keys

_LOOPS = ", ".join(loop.name for loop in select_loops(ProcessRole.KEEPER))


class Command(BaseCommand):
    help = f"Run the keeper: {_LOOPS}. It alone has the signing keys (TOOLHUB_SIGNER), and makes the first if nothing was ever signed."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--once", action="store_true", help="seal what is pending, and end")

    def handle(self, *args: Any, once: bool = False, **options: Any) -> None:
        refuse_foreign_keys()
        try:
            if make_signing_key():
                self.stdout.write(f"A signing key was made in {get_signer().place}. Back it up.")
            if once:
                while sealer.run_turn():
                    pass
                return
        except Problem as problem:
            raise CommandError(f"{problem.detail} {problem.remedy}") from problem
        telemetry.setup_telemetry("keeper")
        make_instruments()
        try:
            exposition.serve_metrics()
        except ValueError as error:
            raise CommandError(str(error)) from error
        if dead := run_loop_process(ProcessRole.KEEPER):
            self.stderr.write(f"{', '.join(dead)} ended by itself.")
            sys.exit(1)  # whoever started the keeper starts it again

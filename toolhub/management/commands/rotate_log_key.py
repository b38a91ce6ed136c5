"""Sign logs with a new key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evidence.log.signer import get_signer
from evidence.log.signing_keys import replace_lost_keys, retire_old_keys, rotate_key, vkeys_to_hand_out
from kernel.problems import Problem


class Command(BaseCommand):
    help = (
        "Create a new key that logs are signed with; the old ones keep signing beside it until --retire. Each step is a fact in "
        "every log, and old keys stay published. Runs where the keeper runs."
    )

    def add_arguments(self, parser: Any) -> None:
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--retire", action="store_true", help="end all keys except the newest, and destroy them")
        group.add_argument("--lost", action="store_true", help="the keys are lost for good: begin with a new one")

    def handle(self, *args: Any, retire: bool = False, lost: bool = False, **options: Any) -> None:
        try:
            if retire:
                self.stdout.write(f"Retired: {', '.join(retire_old_keys()) or 'none'}.")
            else:
                name = replace_lost_keys() if lost else rotate_key()
                self.stdout.write(f"{name} is in {get_signer().place} and signs from now on. Back it up.")
            self.stdout.write("Who verifies a log needs its key, and that of its clock:")
            for key, clock in vkeys_to_hand_out():
                self.stdout.write(f"  {key}  {clock}")
        except Problem as problem:
            raise CommandError(f"{problem.detail} {problem.remedy}") from problem

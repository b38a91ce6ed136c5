"""Make the keys, the database, the first tenant and the first owner of a hub; or see that they are there."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from kernel.problems import Problem
from toolhub import installation
from toolhub.installation import CannotInitialise


class Command(BaseCommand):
    requires_system_checks = []  # the keys that they ask for are made here
    help = (
        "Create the keys, migrate, and create the first tenant and its owner (see TOOLHUB_OWNER_… in dotenv-sample). "
        "Running it again changes nothing that exists."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--keys-only", action="store_true", help="create the keys and nothing else")

    def handle(self, *args: Any, keys_only: bool = False, **options: Any) -> None:
        try:
            for line in installation.make_keys():
                self.stdout.write(line)
            if keys_only:
                return
            call_command("migrate", interactive=False, verbosity=0, skip_checks=False)
            installation.let_processes_log_in()
            owner = installation.make_owner()
        except Problem as problem:
            raise CommandError(f"{problem.detail} {problem.remedy}") from problem
        except CannotInitialise as error:
            raise CommandError(str(error)) from error
        if not owner.created:
            self.stdout.write(f"The hub belongs to {owner.username}.")
            return
        self.stdout.write(f"{owner.username} owns the hub and the tenant {owner.tenant}.")
        if owner.password:
            self.stdout.write(f"Their password, shown this once: {owner.password}")
        self.stdout.write("Next: sign in, set up a second factor, invite people, and make an agent under Govern.")

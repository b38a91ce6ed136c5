"""Start of the hub: how a set-up checkout becomes a serving hub. The last step of `make run`, in the Python of .venv.

Migrating, seeding and serving are commands of their own; here they share one process, because loading the application
takes most of a start and would be paid three times.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from scripts.provision.console import LOG, SetupError, announce_step
from toolhub.database.migration_state import find_missing_migrations


def main() -> None:
    os.umask(0o077)  # database and logs are the owner's, also in a data directory that others may enter
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
    try:
        with announce_step("loading the application", "application loaded"):
            django.setup()
        if find_missing_migrations():  # asking takes a tenth of the time of running `migrate` for nothing
            LOG.parent.mkdir(parents=True, exist_ok=True)  # somebody may have removed all data to begin anew
            with announce_step("preparing the database", "database prepared"), LOG.open("a") as log:
                call_command("migrate", interactive=False, no_color=True, skip_checks=False, stdout=log)
        # Checked at every start; also prints the ways to sign in.
        call_command("seed_demo")
        call_command("serve")
    except CommandError as error:
        raise SetupError(str(error), "`make doctor` says what is wrong here.") from error
    except ImproperlyConfigured as error:
        raise SetupError(str(error)) from error


if __name__ == "__main__":
    try:
        main()
    except SetupError as trouble:
        sys.exit(f"\n{trouble}\n")
    except KeyboardInterrupt:
        sys.exit(130)

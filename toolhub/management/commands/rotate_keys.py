"""Bring stored values under a new master key."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from access.models import Tenant
from evidence.keys.key_file import activate_key, add_key, forget_keys, read_key_file
from evidence.keys.keystore import get_keystore
from evidence.keys.rotation import rewrap_everything
from evidence.keys.wrapped_keys import wrapped_with
from kernel.problems import Problem
from toolhub.installation import check_that_keys_fit


class Command(BaseCommand):
    help = (
        "Create a new master key and wrap the keys of all stored values with it. After an interruption it continues where "
        "it stopped. Old keys stay in the file until --forget. Exits with 2 when something could not be opened."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--prepare",
            action="store_true",
            help="only add the new key to the file; copy the file to every host, then run again without this",
        )
        parser.add_argument("--forget", action="store_true", help="destroy the old keys that no longer wrap anything")

    def handle(self, *args: Any, prepare: bool = False, forget: bool = False, **options: Any) -> None:
        elsewhere = settings.TOOLHUB_KEYSTORE != "file"
        if elsewhere and (prepare or forget):
            raise CommandError(f"Keys are added and destroyed where they are: {settings.TOOLHUB_KEYSTORE}.")
        try:
            check_that_keys_fit()  # before a key is added to a file of another hub
            if elsewhere:
                self.rewrap(get_keystore().derive(b"rotation")[0])
            elif prepare:
                name = add_key(settings.TOOLHUB_KEY_FILE, activate=False)
                self.stdout.write(f"{name} is in {settings.TOOLHUB_KEY_FILE} and wraps nothing yet.")
                self.stdout.write("Copy the file to every host, then type `manage.py rotate_keys`.")
            elif forget:
                self.forget()
            else:
                self.rotate()
        except Problem as problem:
            raise CommandError(f"{problem.detail} {problem.remedy}") from problem

    def rotate(self) -> None:
        path = settings.TOOLHUB_KEY_FILE
        get_keystore()  # the embedded default makes its first key on first use
        names, current = read_key_file(path)
        in_use = set().union(*wrapped_with().values())
        prepared = [name for name in names if name not in in_use and is_newer_key(name, current)]
        if in_use - {current}:
            self.stdout.write(f"Going on with a rotation to {current}.")
        elif prepared:
            current = prepared[-1]
            activate_key(path, current)
            self.stdout.write(f"{current}, prepared before, wraps from now on.")
        else:
            current = add_key(path, activate=True)
            self.stdout.write(f"{current} wraps from now on. Back the key file up.")
        self.rewrap(current)

    def rewrap(self, current: str) -> None:
        done = rewrap_everything(
            to=current,
            tenants=Tenant.objects.order_by("pk").values_list("pk", flat=True),
            said=lambda what, count: self.stdout.write(f"  {what}: {count}"),
        )
        total = ", ".join(f"{count} {what}" for what, count in sorted(done.counts.items())) or "nothing"
        self.stdout.write(f"Wrapped anew: {total}. The old keys are still in the file; --forget destroys them.")
        for what, count in sorted(done.unreadable.items()):
            self.stderr.write(
                f"{count} {what} could not be opened: their key is not in the file, or they were changed."
            )
        if done.unreadable:
            sys.exit(2)

    def forget(self) -> None:
        names, current = read_key_file(settings.TOOLHUB_KEY_FILE)
        in_use = set().union(*wrapped_with().values())
        old = [name for name in names if name not in in_use | {current, min(names)} and not is_newer_key(name, current)]
        forget_keys(settings.TOOLHUB_KEY_FILE, old)
        self.stdout.write(f"Destroyed: {', '.join(old) or 'none'}. {min(names)} stays: fingerprints are made with it.")


def is_newer_key(name: str, other: str) -> bool:
    """Whether the key ``name`` is newer; names are k1, k2, …"""
    return int(name[1:]) > int(other[1:]) if name[1:].isdigit() and other[1:].isdigit() else name > other

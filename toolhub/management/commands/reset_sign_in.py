"""Let somebody in again who lost their password or second factor."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from access.members.invitations import reset_sign_in


class Command(BaseCommand):
    help = "Remove somebody's password and second factors, end their sessions, and print a link for a new password."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, username: str = "", **options: Any) -> None:
        try:
            link = reset_sign_in(username=username)
        except get_user_model().DoesNotExist as error:
            raise CommandError(f"Nobody called {username} signs in here.") from error
        self.stdout.write(f"Hand this to {username} only; it works once, for three days:\n{link}")

"""Make the demonstration tenant and print the ways in."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from toolhub.demo import seed


class Command(BaseCommand):
    help = "Create the demonstration tenant (running it again changes nothing) and print how to sign in and call."

    def handle(self, *args: Any, **options: Any) -> None:
        credentials = seed.seed_demo()
        say = self.stdout.write
        say("")
        say(f"  Console   {settings.TOOLHUB_PUBLIC_URL}")
        for name, (first, last, role) in seed.PEOPLE.items():
            say(f"  {role.label:<9} {name} / {credentials.passwords[name]}   ({first} {last})")
        say(f"  API key   {credentials.api_key}   (agent {seed.AGENT})")
        say("")
        say("  A call that works:")
        say("")
        say(credentials.curl())
        if question := credentials.question():
            say("")
            say(
                "  A question to the model of this machine (a very small one: it shows the way, not what models can do):"
            )
            say("")
            say(question)
        say("")

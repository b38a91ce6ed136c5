"""A worker that only replays: ``python -m tests.replaying_process DATABASE``. Each of its pieces is one call."""

from __future__ import annotations

import os
import sys

import django
from django.conf import settings


def main(database: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    settings.DATABASES["default"]["NAME"] = database
    django.setup()
    from invocations.replaying import pieces, working
    from invocations.replaying.models import What

    pieces.CHUNK[What.DECISIONS] = 1
    while working.work_on_replays():
        pass


if __name__ == "__main__":
    main(sys.argv[1])

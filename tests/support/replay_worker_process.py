"""A worker that only replays: ``python -m tests.support.replay_worker_process DATABASE``. Each of its pieces is one call."""

from __future__ import annotations

import os
import sys

import django
from django.conf import settings


def main(database: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    settings.DATABASES["default"]["NAME"] = database
    django.setup()
    from invocations.replays import batches, worker
    from invocations.replays.models import What

    batches.CHUNK[What.DECISIONS] = 1
    while worker.run_next_batch():
        pass


if __name__ == "__main__":
    main(sys.argv[1])

"""A process that asks a model once: ``python -m tests.support.model_call_process DATABASE KEY JOURNAL KEY_FILE``.

The model writes a line into the journal for each request that comes to it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django
from django.conf import settings


def main(database: str, key: str, journal: Path, key_file: Path) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    settings.DATABASES["default"]["NAME"] = database
    settings.TOOLHUB_KEY_FILE = key_file
    django.setup()
    from django.test import Client

    from invocations.model_calls import tenant_providers
    from tests.support.connected_models import SCRIPTED
    from tests.support.model_calls import MODEL, JournalProvider, say

    tenant_providers.KINDS[SCRIPTED] = lambda cfg: JournalProvider(cfg, journal)
    body = {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}, "arguments": say("Hello")}
    headers = {"Authorization": f"Bearer {key}"}
    answer = Client().post(f"/api/v1/models/{MODEL}/chat", body, content_type="application/json", headers=headers)
    print(answer.status_code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))

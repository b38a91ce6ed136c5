"""A process that only asks: ``python -m tests.support.preflight_process DATABASE`` reads ``KEY TOOL`` lines and answers what
it was told.

It stays alive between the lines, with everything cached that it caches.
"""

from __future__ import annotations

import os
import sys

import django
from django.conf import settings


def main(database: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    settings.DATABASES["default"]["NAME"] = database
    django.setup()
    from access.authentication.bearer import resolve_key_principal
    from invocations.calls import CallRequest
    from invocations.services import preflight_call
    from kernel.http.envelopes import RequestEnvelope
    from kernel.problems import Problem

    for line in sys.stdin:
        key, tool = line.split()
        try:
            by = resolve_key_principal(key)
            envelope = RequestEnvelope(request_id="second-process", actor={"type": "agent", "id": by.id})
            preflight, _ = preflight_call(CallRequest(tool=tool, arguments={"text": "x"}, envelope=envelope), by=by)
            said = preflight.problem.reason if preflight.problem else "allowed"
        except Problem as problem:
            said = problem.reason
        print(said, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

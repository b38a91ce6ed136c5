"""How long does the decision about a call take? A process of its own for each database; prints milliseconds as JSON.

``python -m bench.preflight COUNT`` works on the database that the environment names, which must be migrated and seeded.
"""

from __future__ import annotations

import json
import os
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()

from django.db import connection  # noqa: E402  Django must be set up before models load

from access.authentication import principal_of_key  # noqa: E402
from invocations import services  # noqa: E402
from invocations.calls import Call  # noqa: E402
from toolhub import demo  # noqa: E402
from toolhub.kernel.envelopes import RequestEnvelope  # noqa: E402

TOOL = "commerce.pricing.get_realtime_quote"
WARM_UP = 30


def main(count: int) -> dict[str, list[float]]:
    """``whole``: the tool looked up, then every step. Then what this process computed, and each step by its name."""
    by = principal_of_key(demo.seed().api_key)
    arguments = demo.first_example(TOOL)
    envelope = RequestEnvelope(request_id="bench-preflight", actor={"type": "agent", "id": demo.AGENT})
    call = Call(tool=TOOL, arguments=arguments, envelope=envelope)
    found: dict[str, list[float]] = {}
    for number in range(-WARM_UP, count):
        begun, cpu = time.perf_counter(), time.process_time()
        verdict, log = services.preflight_call(call, by=by)
        whole, busy = (time.perf_counter() - begun) * 1000, (time.process_time() - cpu) * 1000
        if verdict.problem is not None:
            raise SystemExit(f"The preflight refused: {verdict.problem}")
        if number < 0:
            continue
        found.setdefault("whole", []).append(whole)
        found.setdefault("of it CPU time of this process", []).append(busy)
        for step in log.steps:
            found.setdefault(step["name"], []).append(step["end_ms"] - step["begin_ms"])
    connection.close()
    return found


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))

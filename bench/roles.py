"""Roles: what the decision context of a call takes of PostgreSQL, asked as the hub, as a tenant, and as each in turn.

``python3 -m scripts.provision measure bench.roles``. A statement that row level security reaches is planned anew where the role is
another than it was last run with, which costs ten times as much as to run it; so it is prepared once for each role. This shows whether
that still holds: asked as two roles in turn it may take 1.3 times of what it takes as one.
"""

from __future__ import annotations

import json
import os
import statistics
import sys

from bench.figures import judge_figure, print_table, run_part
from bench.hubs import describe_database, make_own_database, run_python, seed_hub

MOST = 1.3
HUB, TENANT, IN_TURN = "as the hub", "as a tenant", "as each in turn"


def measure_roles(url: str) -> list[list[str]]:
    with make_own_database(url) as env:
        key = seed_hub(env)
        said = run_python(env | {"DJANGO_SETTINGS_MODULE": "toolhub.settings"}, "-m", "bench.role_calls", key)
    found: dict[str, list[float]] = json.loads(said.splitlines()[-1])
    took = {name: statistics.median(each) for name, each in found.items()}
    print_table(
        "The decision context of a call, by the role that asks: processor time of PostgreSQL",
        ("", "ms"),
        [[name, f"{ms:.3f}"] for name, ms in took.items()],
    )
    ratio = 2 * took[IN_TURN] / (took[HUB] + took[TENANT])
    figure = f"PostgreSQL's time of a statement as two roles ≤ {MOST} × as one"
    return [judge_figure(figure, f"{ratio:.2f} ×", reached=ratio <= MOST)]


def main() -> int:
    url = os.environ["TOOLHUB_TEST_DATABASE_URL"]
    return run_part(lambda: measure_roles(url), describe_services=lambda: describe_database(url))


if __name__ == "__main__":
    sys.exit(main())

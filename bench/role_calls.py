"""Role calls: one statement asked as one role or another, on one connection, and what the server's process took. Prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import django

django.setup()  # models can be imported only from here on

from django.db import connection  # noqa: E402

from access.authentication.bearer import resolve_key_principal  # noqa: E402
from bench.roles import HUB, IN_TURN, TENANT  # noqa: E402
from invocations.services import find_decision_context  # noqa: E402
from kernel.database.tenancy import acting_for, hub_wide  # noqa: E402

if TYPE_CHECKING:
    from kernel.principal import Principal

TOOL = "sample.tools.echo"
ROUNDS, WARM_UP, PAIRS = 20, 3, 50
SERVER = "SELECT pg_backend_pid()"


def ask(by: Principal, role: str) -> None:
    with hub_wide() if role == HUB else acting_for(by.tenant_id):
        find_decision_context(TOOL, by=by)


def measure_rounds(by: Principal) -> dict[str, list[float]]:
    """Milliseconds of one asking, by way and round."""
    with connection.cursor() as cursor:
        cursor.execute(SERVER)
        used = Path(f"/proc/{cursor.fetchone()[0]}/schedstat")
    found: dict[str, list[float]] = {HUB: [], TENANT: [], IN_TURN: []}
    for number in range(WARM_UP + ROUNDS):
        for way, roles in ((HUB, (HUB, HUB)), (TENANT, (TENANT, TENANT)), (IN_TURN, (HUB, TENANT))):
            before = int(used.read_text().split()[0])
            for _ in range(PAIRS):
                for role in roles:
                    ask(by, role)
            if number >= WARM_UP:
                found[way].append((int(used.read_text().split()[0]) - before) / 1e6 / (2 * PAIRS))
    return found


def main() -> None:
    principal = resolve_key_principal(sys.argv[1])
    if principal is None:
        raise SystemExit("The key is nobody's.")
    print(json.dumps(measure_rounds(principal)))


if __name__ == "__main__":
    main()

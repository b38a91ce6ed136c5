"""Waiting callers: what a web process of two threads holds while 500 calls over MCP wait for a person.

``python -m bench.waiting_callers [CALLERS]`` measures this alone, in an embedded hub. Nobody decides meanwhile; then somebody says no,
and each caller must be answered.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.figures import CannotMeasure, judge_figure, print_table, run_part
from bench.hubs import run_embedded_hub, run_python
from bench.list_streams import META, MODERN, PATIENCE_S, read_memory

CALLERS, THREADS = 500, 2
SETTLES_S = 15.0
HELD = "commerce_checkout_create_draft_order"
ORDER = {
    "lines": [{"sku": "LAPTOP-14", "quantity": 1}],
    "destination": {
        "country": "DE",
        "recipient": "A. B.",
        "line1": "Street 1",
        "city": "Berlin",
        "postal_code": "10115",
    },
    "shipping_option_id": "dhl.standard.DE",
    "expected_total": "10.00",
}
ASK = {"on_consent": "hold", "purpose": "to measure who waits"}
ACCEPT = "application/json, text/event-stream"
DENY = """
import os, django
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()
from django.contrib.auth import get_user_model
from access.consents.services import deny_consent
from access.middleware import principal_of_user
from access.models import Consent, Tenant
by = principal_of_user(get_user_model().objects.get(username="olivia"), Tenant.objects.get(slug="demo"))
for consent in Consent.objects.filter(state="requested", tenant_id=by.tenant_id):
    deny_consent(consent_id=consent.pk, reason="Only to measure.", by=by)
"""


async def ask(url: str, key: str, method: str, params: dict[str, Any], id: int = 1) -> dict[str, Any]:
    """The answer of 2026-07-28, however long it takes."""
    name, _, port = urlsplit(url).netloc.partition(":")
    who = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}, "toolhub/envelope": ASK}
    body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params | {"_meta": who}})
    headers = {
        "Host": f"{name}:{port}",
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept": ACCEPT,
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
        "Content-Length": str(len(body)),
        "Connection": "close",
    } | ({"Mcp-Name": params["name"]} if "name" in params else {})
    reader, writer = await asyncio.open_connection(name, int(port))
    writer.write("\r\n".join(["POST /mcp HTTP/1.1", *map(": ".join, headers.items()), "", body]).encode())
    answer = (await reader.read()).decode()
    writer.close()
    start = answer.find('{"jsonrpc"')
    if start < 0:
        raise CannotMeasure(answer[:500])
    found: dict[str, Any] = json.JSONDecoder().raw_decode(answer[start:])[0]
    return found


def count_held(data: str) -> int:
    with closing(sqlite3.connect(f"file:{data}/toolhub.sqlite3?mode=ro", uri=True)) as database:
        (count,) = database.execute("SELECT count(*) FROM invocations_invocation WHERE state = 'held'").fetchone()
    return int(count)


async def _measure(url: str, key: str, env: dict[str, str], pid: int, callers: int) -> tuple[list[list[str]], int, int]:
    await ask(url, key, "tools/list", {})
    before, threads = read_memory(pid)
    call = {"name": HELD, "arguments": ORDER}
    waiting = [asyncio.ensure_future(ask(url, key, "tools/call", call, number)) for number in range(callers)]
    until = time.perf_counter() + 4 * PATIENCE_S
    while await asyncio.to_thread(count_held, env["TOOLHUB_DATA_DIR"]) < callers:
        if time.perf_counter() > until:
            raise CannotMeasure("Not every call was held.")
        await asyncio.sleep(0.2)
    await asyncio.sleep(SETTLES_S)  # each is looked at once when it begins to wait
    after, later_threads = read_memory(pid)
    begun = time.perf_counter()
    await ask(url, key, "tools/list", {})
    listed = time.perf_counter() - begun
    await asyncio.to_thread(run_python, env, "-c", DENY)
    answers = await asyncio.wait_for(asyncio.gather(*waiting), 4 * PATIENCE_S)
    answered = sum("result" in each for each in answers)
    rows = [
        ["memory", f"{before:.0f} → {after:.0f} MiB, {1024 * (after - before) / callers:.0f} KiB each"],
        ["threads of the process", f"{threads} → {later_threads}"],
        ["another caller lists its tools meanwhile", f"{1000 * listed:.0f} ms"],
        ["answered", f"{answered} of {callers}"],
    ]
    return rows, answered, later_threads - threads


def measure(callers: int = CALLERS) -> list[list[str]]:
    with run_embedded_hub(TOOLHUB_WEB_THREADS=str(THREADS), TOOLHUB_SYNC_WAIT_S="600") as (url, env, pid):
        key = json.loads(Path(env["TOOLHUB_DATA_DIR"], "demo-credentials.json").read_text())["api_key"]
        rows, answered, more = asyncio.run(_measure(url, key, env, pid, callers))
    print_table(
        f"{callers} calls over MCP that wait for a person, {THREADS} threads for requests", ("", "measured"), rows
    )
    what = f"{callers} callers wait over MCP on {THREADS} threads, and all are answered"
    reached = answered == callers and more <= THREADS
    return [judge_figure(what, f"{answered} answered, {more} threads more", reached=reached)]


if __name__ == "__main__":
    sys.exit(run_part(lambda: measure(*map(int, sys.argv[1:2]))))

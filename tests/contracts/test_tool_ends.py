"""Tool ends: does each way in which a tool can end have one answer, whatever the tool is written with and wherever it runs?

docs/reference/tool-ends.md is the same table for authors.
"""

from __future__ import annotations

import textwrap
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from invocations.direct_runs.pool import DirectSandbox
from invocations.end.outcomes import build_ending
from invocations.models import State
from invocations.sandbox.base import BoxKey, Limits, Profile, RunOutcome, RunStatus
from invocations.step_log import StepLog
from sandbox.image import NODE, image_name
from tests.support.sandboxes import call_of, docker_sandbox, package_of
from unitools.packages import build_zip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.sandbox.base import RunEvent, SandboxCall
    from invocations.sandbox.docker import DockerSandbox
    from registry.models import ToolVersion

pytestmark = pytest.mark.django_db
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "tool-ends.md"
MIB = 1024 * 1024
FAILED, RESOURCE, BLOCKED = "TOOL.EXECUTION_FAILED", "SANDBOX.RESOURCE_EXCEEDED", "SANDBOX.CAPABILITY_BLOCKED"
ROOMY = Limits(wall_ms=20_000, memory_bytes=128 * MIB)


@dataclass(frozen=True)
class End:
    """``python`` is the body of a function, ``node`` a program, ``details`` are those of the problem."""

    python: str
    node: str
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    limits: Limits = ROOMY
    state: State = State.FAILED
    attempt: str = ""
    cancel: bool = False


ENDS = {
    "a value": End("return {'n': 1.5}", "answer({n: 1.5})", state=State.SUCCEEDED),
    "a refusal": End(
        "raise runtime.OutOfStock('Only 3 left.', available=3, **{'in days': 2})",
        "answer({code: 'OUT_OF_STOCK', message: 'Only 3 left.', details: {available: 3, 'in days': 2}}); process.exit(1)",
        "DOMAIN.OUT_OF_STOCK",
        {"available": 3, "in days": 2},
    ),
    "a refusal with a code of its own": End(
        "class Closed(runtime.DomainError): code = 'TILL_CLOSED'\nraise Closed('Come back at nine.')",
        "answer({code: 'TILL_CLOSED', message: 'Come back at nine.'}); process.exit(1)",
        FAILED,
        {"code": "TILL_CLOSED"},
    ),
    "an exception": End(
        "raise TypeError('what only evidence holds')",
        "throw new TypeError('what only evidence holds')",
        FAILED,
        {"error_type": "TypeError"},
    ),
    "a file": End(
        "open('/etc/shadow').read()",
        "require('fs').readFileSync('/etc/shadow')",
        BLOCKED,
        {"capability": "fs"},
        attempt="fs:/etc/shadow",
    ),
    "a file, behind another exception": End(
        "try: open('/etc/shadow').read()\nexcept OSError as error: raise KeyError('accounts') from error",
        "try { require('fs').readFileSync('/etc/shadow') } catch (cause) { throw new Error('accounts', {cause}) }",
        BLOCKED,
        {"capability": "fs"},
        attempt="fs:/etc/shadow",
    ),
    "a host": End(
        "socket.create_connection(('192.0.2.1', 80), 5)",
        "require('net').connect(80, '192.0.2.1')",
        BLOCKED,
        {"capability": "net"},
        attempt="net:192.0.2.1:80",
    ),
    "a host, among several exceptions": End(
        "try: urllib.request.urlopen('http://example.org')\nexcept OSError as error: raise ExceptionGroup('', [KeyError(1), error])",
        "fetch('http://example.org')",
        BLOCKED,
        {"capability": "net"},
        attempt="net:example.org",
    ),
    "a program": End(
        "subprocess.run(['/bin/true'])",
        "require('child_process').spawn('/bin/true')",
        BLOCKED,
        {"capability": "proc"},
        attempt="proc:/bin/true",
    ),
    "too long": End(
        "time.sleep(60)",
        "setInterval(() => 0, 1000)",
        "SANDBOX.TIMEOUT",
        {"limit": "timeout_ms", "timeout_ms": 2_000, "set_by": "manifest"},
        limits=replace(ROOMY, wall_ms=2_000),
        state=State.TIMED_OUT,
    ),
    "too much output": End(
        "return {'n': 1.0, 'text': 'x' * 5000}",
        "answer({n: 1, text: 'x'.repeat(5000)})",
        RESOURCE,
        {"limit": "result_too_large"},
        limits=replace(ROOMY, result_bytes=4000),
    ),
    "too much log": End(
        "while True: print('x' * 10000)",
        "while (true) require('fs').writeSync(1, 'x'.repeat(10000))",
        RESOURCE,
        {"limit": "log_flood"},
        limits=replace(ROOMY, log_flood_bytes=MIB),
    ),
    "too much memory": End(
        "held = []\nwhile True: held.append(bytearray(MIB))",
        "const held = []; while (true) held.push({each: new Array(1000).fill(1.5)})",
        RESOURCE,
        {"limit": "out_of_memory"},
    ),
    "not as declared": End("return {'n': 'seven'}", "answer({n: 'seven'})", "SCHEMA.OUTPUT_INVALID"),
    "no JSON": End("return {'n': float('nan')}", "require('fs').writeSync(3, '{\"n\": NaN}')", "SCHEMA.OUTPUT_INVALID"),
    "an exit": End("sys.exit(3)", "process.exit(3)", FAILED),
    "an exit without a word": End("os._exit(0)", "process.exit(0)", FAILED),
    "a crash": End("os.abort()", "process.abort()", FAILED),
    "cancelled": End(
        "print('begun', flush=True)\ntime.sleep(60)",
        "console.log('begun'); setInterval(() => 0, 1000)",
        "SANDBOX.CANCELLED",
        state=State.CANCELLED,
        cancel=True,
    ),
}

IMPORTS = "import os, socket, subprocess, sys, time, urllib.request\nfrom unitools import runtime\nMIB = 1 << 20\n"
TYPES = "from typing_extensions import NotRequired, TypedDict\n"
UNIVERSE = f"{TYPES}from unitools import Universe\nu = Universe('acme.ends', version='1.0.0')\n"
DECLARES = "class Answer(TypedDict):\n    n: float\n    text: NotRequired[str]\n"
ANSWER = "const answer = (value) => require('fs').writeFileSync(3, JSON.stringify(value));\n"


def _entry(name: str) -> str:
    return f"end_{list(ENDS).index(name)}"


def _functions(way: str, returns: str = "", above: str = "") -> str:
    """All ends as functions of one module, so that those that leave their box clean share one."""
    heads = {name: f"{above}{way} {_entry(name)}(){returns}:" for name in ENDS}
    return "".join(f"{head}\n{textwrap.indent(ENDS[name].python, '    ')}\n\n" for name, head in heads.items())


def _universe(way: str) -> str:
    tools = _functions(way, " -> Answer", "@u.tool(timeout=1.0)\n")
    entries = (f"async def run_{entry}(): return await answer(u, '{entry}', {{}})\n" for entry in map(_entry, ENDS))
    return f"{IMPORTS}from unitools.boxed import answer\n{UNIVERSE}{DECLARES}{tools}{''.join(entries)}"


WAYS: dict[str, Callable[[], str]] = {
    "plain": lambda: IMPORTS + _functions("def"),
    "plain, async": lambda: IMPORTS + _functions("async def"),
    "Universe": lambda: _universe("def"),
    "Universe, async": lambda: _universe("async def"),
    "trusted": lambda: IMPORTS + _functions("def"),
    "Node.js": lambda: "",
}


@pytest.fixture(scope="module")
def boxes() -> Iterator[DockerSandbox]:
    made = docker_sandbox()
    yield made
    made.close()


@pytest.fixture(scope="module")
def direct() -> Iterator[DirectSandbox]:
    made = DirectSandbox()
    yield made
    made.close()


@pytest.fixture
def version(submit: Callable[..., ToolVersion]) -> ToolVersion:
    declared = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    return submit(output_schema=declared, timeout_ms=60_000)


def call_for(way: str, name: str, folder: Path, dependencies: Path) -> SandboxCall:
    if way == "Node.js":
        (package := folder / "tool").mkdir()
        (package / "main.js").write_text(ANSWER + ENDS[name].node)
        return replace(call_of(build_zip(package)), program=("/usr/bin/node", "main.js"), image=image_name(kind=NODE))
    source, entry = WAYS[way](), _entry(name)
    key = BoxKey("tenant", way)
    if way.startswith("Universe"):
        call = call_of(package_of(folder, main=source), entry=f"run_{entry}")
        return replace(call, dependencies=dependencies, key=replace(key, dependencies="sdk"))
    return replace(call_of(package_of(folder, main=source), entry=entry), key=key)


@pytest.mark.req("SVC-4", "SVC-7", "SVC-10", "TOOLS-24")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ENDS)
def test_a_tool_ends_alike_whatever_it_is_written_with(
    name: str,
    way: str,
    boxes: DockerSandbox,
    direct: DirectSandbox,
    version: ToolVersion,
    sdk_dependencies: Path,
    tmp_path: Path,
) -> None:
    end = ENDS[name]
    sandbox = direct if way == "trusted" else boxes
    call = call_for(way, name, tmp_path, sdk_dependencies)

    def cancel(event: RunEvent) -> None:
        if end.cancel and "begun" in event.text:
            threading.Thread(target=sandbox.kill, args=[call.name]).start()

    outcome: RunOutcome = sandbox.run(Profile(end.limits), call, cancel)
    ending = build_ending(version, outcome, StepLog(datetime.now(UTC)), limits=end.limits, limiters={})

    assert outcome.status is not RunStatus.START_FAILED, outcome
    assert ending.state is end.state, outcome
    assert (ending.problem.reason if ending.problem else "") == end.reason, outcome
    details = dict(ending.problem.details) if ending.problem else {}
    attempts = details.pop("attempts", [])
    pointers = details.pop("pointers", None)
    assert pointers == ["/n"] or name != "not as declared", outcome
    assert details == end.details, outcome
    assert any(each.startswith(end.attempt) for each in attempts) or not end.attempt, outcome


@pytest.mark.req("TOOLS-24")
def test_the_page_for_authors_has_every_end_and_its_reason() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    told = {row[0].strip(): row[2].strip("` ") for row in rows}

    assert {name: end.reason or "succeeded" for name, end in ENDS.items()}.items() <= told.items()

"""Contract of sandboxes: what must every sandbox do? Run on the fake and on the real one."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import Limits, Profile, RunStatus, Sandbox
from invocations.sandbox.results import ARTIFACTS
from tests.contracts.clock_contract import ClockContract
from tests.contracts.life_contract import LifeContract
from tests.support.sandboxes import call_of, package_of
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from pathlib import Path

SHORT = Limits(wall_ms=1_500)
MIB = 1024 * 1024

NOT_STRICT = {
    "not a number": "return float('nan')",
    "infinity": "return [1e308 * 10]",
    "a set": "return {1, 2}",
    "bytes": "return b'x'",
    "a large integer": "return 10 ** 30",
    "half a surrogate pair": "return '\\ud800'",
    "NUL": "return {'a': ['b\\0']}",
    "a key twice": "return {1: 'a', '1': 'b'}",
    "too deep": "return [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    "itself": "a = []; a.append(a); return a",
}


SECRET = "a-secret-value-of-the-tenant"
LOOKS_FOR_ITS_SECRET = """
import os
from unitools import runtime

def run(words):
    text = "-".join(words)
    try:
        has = runtime.secret("API_TOKEN") == text
    except LookupError:
        has = False
    seen = [f"{name}={value}" for name, value in os.environ.items()]
    for place in (os.getcwd(), os.path.dirname(os.path.dirname(__file__))):
        seen += [os.path.join(place, each) for each in os.listdir(place)]
    for name in ("/proc/self/environ", "/proc/self/cmdline"):
        with open(name, "rb") as file:
            seen.append(file.read().decode(errors="replace"))
    return {"region": runtime.config().get("region"), "has": has, "found": [each for each in seen if text in each]}
"""


def may(document: dict[str, Any]) -> Profile:
    return Profile(capabilities=Capabilities.from_json(document))


class SandboxContract(LifeContract, ClockContract):
    """Subclasses give the fixture ``sandbox``, and say which capabilities it ``gives`` that reach outside."""

    gives: frozenset[str] = frozenset()

    # -- what a tool says

    @pytest.mark.req("SVC-6", "CARD-5")
    def test_a_tool_gets_its_arguments_and_its_value_and_report_come_back(self, run: Any) -> None:
        outcome = run(
            """
from unitools import runtime
def run(sku, quantity):
    runtime.used_source("price_list", name="prices", version="7")
    runtime.warn("Old price.")
    runtime.set_ttl(60)
    return {"sku": sku, "total": quantity * 2.5, "text": "\u4e2d\u6587 \\U0001f600"}
""",
            sku="A-1",
            quantity=3,
        )

        assert outcome.status is RunStatus.OK, outcome
        assert outcome.value == {"sku": "A-1", "total": 7.5, "text": "中文 😀"}
        assert outcome.report == {
            "sources": [{"type": "price_list", "name": "prices", "version": "7"}],
            "warnings": ["Old price."],
            "ttl_seconds": 60,
        }
        assert outcome.clean
        assert outcome.attempts == ()
        assert outcome.box
        assert outcome.image

    @pytest.mark.req("SPEC-1", "SPEC-3")
    def test_the_call_is_known_to_the_tool(self, run: Any) -> None:
        outcome = run(
            "from unitools.runtime import current_call\n"
            "def run():\n    call = current_call()\n"
            "    return [call.call_id, call.tool_id, call.started_at.isoformat(), call.traceparent, call.locale, call.currency,"
            " call.timezone, call.request_id, call.session_id, call.client]"
        )

        ids = ["inv_test", "test.tool.one", "2026-11-22T10:00:00+00:00", "00-1-2-01"]
        said = ["de-DE", "EUR", "Europe/Berlin", "request-1", "session-1", {"app": "shop", "version": "3"}]
        assert outcome.value == ids + said

    @pytest.mark.req("TOOLS-1")
    def test_configuration_and_secrets_reach_the_tool_and_lie_nowhere_about_it(
        self, sandbox: Sandbox, tmp_path: Path
    ) -> None:
        package = package_of(tmp_path, main=LOOKS_FOR_ITS_SECRET)
        call = call_of(package, words=SECRET.split("-"))
        call = replace(call, config={"region": "eu"}, secrets={"API_TOKEN": SECRET})

        outcome = sandbox.run(Profile(), call)
        after = sandbox.run(Profile(), call_of(package, words=SECRET.split("-")))

        assert outcome.value == {"region": "eu", "has": True, "found": []}, outcome
        assert after.value == {"region": None, "has": False, "found": []}, after
        assert SECRET not in repr(call)

    @pytest.mark.req("SVC-2")
    def test_an_async_function_is_awaited(self, run: Any) -> None:
        outcome = run("import asyncio\nasync def run():\n    await asyncio.sleep(0.01)\n    return 5")

        assert outcome.value == 5

    @pytest.mark.req("SVC-2")
    def test_a_package_finds_its_own_files(self, sandbox: Sandbox, tmp_path: Path) -> None:
        package = package_of(
            tmp_path,
            main="from pathlib import Path\nfrom importlib import resources\nfrom tool.other import TWO\n"
            "def run():\n"
            "    here = Path(__file__).with_name('other.py').read_text()\n"
            "    return [TWO, here, resources.files('tool').joinpath('other.py').read_text()]",
            other="TWO = 2",
        )

        outcome = sandbox.run(Profile(), call_of(package))

        assert outcome.value == [2, "TWO = 2", "TWO = 2"], outcome

    @pytest.mark.req("SVC-4")
    def test_output_is_kept_apart_and_is_not_the_result(self, run: Any) -> None:
        outcome = run(
            'import sys\ndef run():\n    print(\'{"status": "ok", "value": 9}\')\n'
            "    print('careful', file=sys.stderr)\n    sys.stdout.buffer.write(b'\\xff\\0')\n    return 1"
        )

        assert (outcome.status, outcome.value) == (RunStatus.OK, 1)
        assert outcome.stdout == '{"status": "ok", "value": 9}\n\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}'
        assert outcome.stderr == "careful\n"

    @pytest.mark.req("SPEC-6")
    def test_a_domain_error_keeps_its_code_and_details(self, run: Any) -> None:
        outcome = run(
            "from unitools.runtime import OutOfStock\ndef run(): raise OutOfStock('Only 3 left.', sku='A', available=3)"
        )

        assert outcome.status is RunStatus.DOMAIN_ERROR
        assert outcome.error_code == "OUT_OF_STOCK"
        assert outcome.error_message == "Only 3 left."
        assert outcome.error_details == {"sku": "A", "available": 3}

    @pytest.mark.req("SVC-4")
    def test_an_exception_is_named_and_its_message_is_bounded(self, run: Any) -> None:
        outcome = run("def run(): raise ValueError('x' * 100_000)")

        assert (outcome.status, outcome.error_type) == (RunStatus.RAISED, "ValueError")
        assert outcome.error_message == "x" * 2000
        assert "Traceback" in outcome.stderr

    @pytest.mark.req("SVC-4")
    def test_an_exception_that_cannot_be_shown_is_survived(self, run: Any) -> None:
        outcome = run(
            "class Bad(Exception):\n    def __str__(self): raise RuntimeError(self)\n    __repr__ = __str__\n"
            "def run(): raise Bad"
        )

        assert (outcome.status, outcome.error_type) == (RunStatus.RAISED, "Bad")

    @pytest.mark.req("SVC-4")
    @pytest.mark.parametrize(
        ("source", "error"),
        [
            ("def run(:", "SyntaxError"),
            ("import no_such_module", "ModuleNotFoundError"),
            ("", "AttributeError"),
            ("run = 5", "TypeError"),
            ("def run(missing): return 1", "TypeError"),
        ],
    )
    def test_a_tool_that_cannot_be_called_has_raised(self, run: Any, source: str, error: str) -> None:
        outcome = run(source)

        assert (outcome.status, outcome.error_type) == (RunStatus.RAISED, error)

    @pytest.mark.req("TOOLS-23")
    @pytest.mark.parametrize("body", NOT_STRICT.values(), ids=NOT_STRICT.keys())
    def test_what_is_not_strict_json_is_a_bad_result(self, run: Any, body: str) -> None:
        outcome = run(f"def run(): {body}")

        assert outcome.status is RunStatus.BAD_RESULT, outcome
        assert outcome.error_message

    @pytest.mark.req("TOOLS-23")
    def test_a_report_of_the_wrong_shape_is_a_bad_result(self, run: Any) -> None:
        outcome = run("from unitools import runtime\ndef run(): runtime.warn(5); return 1")

        assert outcome.status is RunStatus.BAD_RESULT

    @pytest.mark.req("SVC-2")
    @pytest.mark.parametrize("package", [b"", b"no zip", bytes(1000)])
    def test_a_package_that_cannot_be_read_does_not_start(self, sandbox: Sandbox, package: bytes) -> None:
        outcome = sandbox.run(Profile(), call_of(package))

        assert outcome.status is RunStatus.START_FAILED
        assert "zip" in outcome.error_message

    @pytest.mark.req("SVC-2")
    def test_a_package_that_fits_into_no_frame_does_not_start(self, sandbox: Sandbox, tmp_path: Path) -> None:
        call = call_of(package_of(tmp_path, main="def run(): return 1"), text="x" * (41 * MIB))

        outcome = sandbox.run(Profile(), call)

        assert outcome.status is RunStatus.START_FAILED
        assert "bytes" in outcome.error_message

    # -- what is done to a tool

    @pytest.mark.req("SVC-7")
    @pytest.mark.parametrize(
        "source",
        [
            "import time\ndef run(): time.sleep(60)",
            "import signal, time\ndef run():\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    while True: pass",
        ],
        ids=["sleeps", "spins"],
    )
    def test_a_tool_that_runs_too_long_is_stopped(self, run: Any, source: str) -> None:
        begun = time.monotonic()
        outcome = run(source, SHORT)

        assert outcome.status is RunStatus.TIMED_OUT
        assert not outcome.clean
        assert 1_400 < outcome.duration_ms < 30_000  # by itself it ends after a minute, or never
        assert time.monotonic() - begun < 50

    @pytest.mark.req("SVC-7")
    def test_processor_time_is_limited_too(self, run: Any) -> None:
        outcome = run("def run():\n    while True: pass", Limits(cpu_s=1, wall_ms=60_000))

        assert outcome.status is RunStatus.TIMED_OUT
        assert "processor" in outcome.error_message

    @pytest.mark.req("SVC-4")
    @pytest.mark.parametrize(
        ("source", "how"),
        [
            ("import os\ndef run(): os._exit(3)", "exit code 3"),
            ("import os\ndef run(): os.abort()", "signal"),
            ("import sys\ndef run(): sys.exit(0)", "sys.exit"),
        ],
    )
    def test_a_process_that_ends_without_a_result_has_exited(self, run: Any, source: str, how: str) -> None:
        outcome = run(source)

        assert outcome.status is RunStatus.EXITED
        assert how in outcome.error_message

    @pytest.mark.req("TOOLS-5")
    def test_memory_is_limited(self, run: Any) -> None:
        outcome = run("def run(): return len(bytearray(2 * 10**9))", Limits(memory_bytes=64 * MIB))

        assert outcome.status is RunStatus.OUT_OF_MEMORY, outcome

    @pytest.mark.req("TOOLS-5")
    def test_a_large_result_is_refused(self, run: Any) -> None:
        outcome = run("def run(): return 'x' * 5000", Limits(result_bytes=4000))

        assert outcome.status is RunStatus.RESULT_TOO_LARGE
        assert outcome.value is None

    @pytest.mark.req("TOOLS-32")
    def test_what_a_tool_leaves_beside_its_result_comes_back_as_far_as_it_may(self, run: Any) -> None:
        source = (
            "from unitools import runtime\ndef run(size):\n    runtime.artifact('a.txt', 'x')\n"
            "    return runtime.artifact('b.bin', bytes(range(256)) * size, media_type='image/png')"
        )
        may_leave = Limits(result_bytes=1024, artifacts=2, artifact_bytes=MIB)

        left, larger, more = (
            run(source, may_leave, size=2048),
            run(source, may_leave, size=4096),
            run(source, replace(may_leave, artifacts=1), size=1),
        )

        assert left.value == {"artifact": "b.bin"}
        assert [(each.name, each.claim, len(each.content)) for each in left.artifacts] == [
            ("a.txt", "", 1), ("b.bin", "image/png", 2048 * 256)
        ]  # fmt: skip
        assert left.artifacts[1].content == bytes(range(256)) * 2048
        for outcome in (larger, more):
            assert (outcome.status, outcome.error_code, outcome.artifacts) == (
                RunStatus.RESULT_TOO_LARGE,
                ARTIFACTS,
                (),
            )

    @pytest.mark.req("TOOLS-5")
    def test_of_a_log_the_beginning_is_kept(self, run: Any) -> None:
        outcome = run("def run():\n    print('ab' * 5000)\n    return 1", Limits(log_bytes=100))

        assert (outcome.status, outcome.value) == (RunStatus.OK, 1)
        assert outcome.stdout == "ab" * 50

    @pytest.mark.req("TOOLS-5")
    def test_a_flood_of_output_ends_the_run(self, run: Any) -> None:
        outcome = run("def run():\n    while True: print('x' * 10000)", Limits(log_flood_bytes=MIB))

        assert outcome.status is RunStatus.LOG_FLOOD
        assert len(outcome.stdout) == Limits().log_bytes

    @pytest.mark.req("TOOLS-3")
    def test_scratch_space_is_there_and_limited(self, run: Any) -> None:
        source = (
            "import os, tempfile\ndef run(size):\n    with tempfile.TemporaryFile() as file:\n"
            "        file.write(bytes(size)); file.flush(); return os.fstat(file.fileno()).st_size"
        )

        assert run(source, Limits(tmp_bytes=MIB), size=1000).value == 1000
        assert run(source, Limits(tmp_bytes=MIB), size=2 * MIB).status is RunStatus.RAISED

    # -- what a tool may not reach

    @pytest.mark.req("SVC-10", "TOOLS-16", "TOOLS-17")
    @pytest.mark.parametrize(
        ("body", "capability", "attempt"),
        [
            ("open('/etc/passwd').read()", "fs", "fs:/etc/passwd"),
            ("open('/home/anna/.ssh/id_rsa').read()", "fs", "fs:/home/anna/.ssh/id_rsa"),
            ("os.listdir('/srv')", "fs", "fs:/srv"),
            ("open('/opt/x', 'w')", "fs", "fs:/opt/x"),
            ("open('/proc/1/environ').read()", "fs", "fs:/proc/1/environ"),
            ("socket.create_connection(('192.0.2.1', 80), 1)", "net", "net:192.0.2.1:80"),
            ("urllib.request.urlopen('https://example.org')", "net", "net:example.org:443"),
            ("subprocess.run(['/bin/true'])", "proc", "proc:/bin/true"),
            ("os.execv('/bin/true', ['true'])", "proc", "proc:/bin/true"),
        ],
    )
    def test_what_the_profile_lacks_is_blocked_and_named(
        self, run: Any, body: str, capability: str, attempt: str
    ) -> None:
        outcome = run(f"import os, socket, subprocess, urllib.request\ndef run(): {body}")

        assert outcome.status is RunStatus.CAPABILITY_BLOCKED, outcome
        assert outcome.blocked == capability
        assert attempt in outcome.attempts

    @pytest.mark.req("SVC-10")
    def test_an_attempt_is_witnessed_even_when_the_tool_hides_it(self, run: Any) -> None:
        outcome = run(
            "def run():\n    try: open('/etc/shadow')\n    except OSError: pass\n    return 'nothing happened'"
        )

        assert (outcome.status, outcome.value) == (RunStatus.OK, "nothing happened")
        assert outcome.attempts == ("fs:/etc/shadow",)

    @pytest.mark.req("SVC-10")
    def test_code_that_looks_for_a_program_which_is_not_there_goes_on_without_it(self, run: Any) -> None:
        outcome = run(
            "import subprocess\ndef run():\n    try: subprocess.run(['no-such-program', '-v'])\n"
            "    except FileNotFoundError: return 'none here'"
        )

        assert (outcome.status, outcome.value) == (RunStatus.OK, "none here")
        assert outcome.attempts == ("proc:no-such-program",)

    @pytest.mark.req("TOOLS-24")
    def test_an_error_of_the_tools_own_making_is_not_a_block(self, run: Any) -> None:
        outcome = run("def run(): raise PermissionError('You may not see this order.')")

        assert outcome.status is RunStatus.RAISED

    @pytest.mark.req("SVC-10")
    def test_the_environment_of_the_hub_stays_outside(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TOOLHUB_SECRET_KEY", "do-not-tell")

        outcome = run(
            "import os\ndef run(): return [sorted(os.environ), open('/proc/self/environ').read().split('\\0')]"
        )

        assert outcome.status is RunStatus.OK, outcome
        assert "do-not-tell" not in str(outcome.value)
        assert {name for name in outcome.value[0] if "TOOLHUB" in name} == set()

    @pytest.mark.req("SVC-10")
    def test_a_call_finds_nothing_of_the_call_before(self, run: Any) -> None:
        source = "import os\ndef run():\n    seen = os.listdir('.')\n    open('left', 'w').write('x')\n    return seen"

        assert run(source).value == []
        assert run(source).value == []

    @pytest.mark.req("TOOLS-16")
    @pytest.mark.parametrize(
        ("profile", "names"),
        [
            (Profile(), ()),
            (may({"fs": [{"path": "/data", "actions": ["read"]}]}), ("fs",)),
            (may({"net": [{"host": "example.org"}], "proc": ["/bin/ls"]}), ("net", "proc")),
            (may({"cidr": [{"cidr": "10.0.0.0/8", "ports": ["443"]}]}), ("cidr",)),
            (may({"browser": True}), ("browser",)),
            (may({"secrets": ["API_KEY"], "tmp": 4096}), ()),
        ],
    )
    def test_what_it_cannot_give_it_says(
        self, sandbox: Sandbox, tmp_path: Path, profile: Profile, names: tuple[str, ...]
    ) -> None:
        names = tuple(name for name in names if name not in self.gives)
        assert sandbox.missing(profile) == names
        if names:
            outcome = sandbox.run(profile, call_of(package_of(tmp_path, main="def run(): return 1")))
            assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, names[0])

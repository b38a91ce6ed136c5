"""A tool that is a program of an image: what it is given, what it may say, and what it cannot do.

The program is Node.js, because nothing of the box's own Python helps there.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import protocol, run_monitor
from sandbox.image import NODE, image_name
from tests.support.box_driver import ROOMY, DrivenBox, Said

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = {"argv": ["/usr/bin/node", "main.js"]}
COUNTS_WORDS = (ROOT / "tools" / "text" / "main.js").read_text()
ANSWER = "const answer = (value) => require('fs').writeFileSync(3, JSON.stringify(value));\n"


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Said]:
    """Runs one program in a box of its own, and an innocent one in the next, which must be right."""
    tmp_path.chmod(0o755)

    def once(
        source: str, *, limits: dict[str, int] | None = None, load: dict[str, Any] | None = None, **arguments: Any
    ) -> Said:
        with DrivenBox(tmp_path, limits=replace(ROOMY, **(limits or {})), image=image_name(kind=NODE)) as box:
            loaded = box.load(
                {}, level="single", program=PROGRAM, more={"tool/main.js": ANSWER + source}, **(load or {})
            )
            assert loaded["ok"], loaded
            return box.call(**arguments)

    return once


def test_the_demonstration_counts_words_in_languages_without_spaces(run: Callable[..., Said]) -> None:
    said = run(
        COUNTS_WORDS.replace('"use strict";', ""), text="今天天气很好。我们去公园玩。", locale="zh-CN", most_frequent=1
    )

    assert (said.ended, said.kind, said.clean) == (run_monitor.EXITED, protocol.RETURNED, True), said
    assert (said.value["words"], said.value["sentences"], len(said.value["most_frequent"])) == (7, 2, 1)


def test_a_refusal_of_a_program_is_one_that_the_caller_understands(run: Callable[..., Said]) -> None:
    said = run(COUNTS_WORDS.replace('"use strict";', ""), text="x", locale="no such")

    assert said.kind == protocol.DOMAIN_ERROR, said
    assert (said.about["error"]["code"], said.about["error"]["details"]) == ("INVALID_ARGUMENT", {"locale": "no such"})


def test_a_program_gets_its_call_and_keeps_secrets_out_of_sight(run: Callable[..., Said]) -> None:
    said = run(
        "const fs = require('fs');\n"
        "const settings = JSON.parse(fs.readFileSync(Number(process.env.TOOLHUB_SETTINGS_FD), 'utf8'));\n"
        "fs.writeFileSync(process.env.TMPDIR + '/scratch', 'x');\n"
        "answer({arguments: JSON.parse(fs.readFileSync(0, 'utf8')), call: JSON.parse(process.env.TOOLHUB_CALL).call_id,\n"
        "  folder: process.cwd(), secret: settings.secrets.API_TOKEN, region: settings.config.region,\n"
        "  shown: JSON.stringify(process.env) + process.argv.join(' ')});",
        a=1,
    )

    shown = said.value.pop("shown")
    assert said.value == {
        "arguments": {"a": 1},
        "call": "inv_test",
        "folder": "/p/tool",
        "secret": "a-secret-of-the-tenant",
        "region": "eu",
    }
    assert "a-secret-of-the-tenant" not in shown


def test_what_a_program_prints_is_a_log_and_never_its_result(run: Callable[..., Said]) -> None:
    said = run("console.log(JSON.stringify({price: 1})); console.error('oh'); answer({price: 2});")

    assert (said.value, said.stdout, said.stderr) == ({"price": 2}, b'{"price":1}\n', b"oh\n")


def test_progress_reaches_the_hub_while_the_program_runs(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    source = ANSWER + "require('fs').writeSync(4, JSON.stringify({fraction: 0.5}) + '\\n'); answer(1);"
    with DrivenBox(tmp_path, image=image_name(kind=NODE)) as box:
        box.load({}, level="single", program=PROGRAM, more={"tool/main.js": source})
        said = box.call(stream=True)

        assert said.value == 1
        assert b"".join(data for stream, data in box.events if stream == "progress") == b'{"fraction":0.5}\n'


@pytest.mark.parametrize(
    ("source", "how"),
    [
        ("process.exit(1);", "exit code 1"),
        ("process.exit(0);", "exit code 0"),
        ("answer({code: 7, message: 'x'}); process.exitCode = 3;", "exit code 3"),
        ("require('fs').writeFileSync(3, '[[['); process.exitCode = 3;", "exit code 3"),
    ],
)
def test_a_program_that_fails_has_no_result(run: Callable[..., Said], source: str, how: str) -> None:
    said = run(source)

    assert (said.ended, said.kind, said.value) == (run_monitor.EXITED, protocol.EXITED, None), said
    assert how in said.about["error"]["message"]


@pytest.mark.parametrize(("source", "number"), [("process.kill(process.pid, 'SIGKILL');", 9), ("process.abort();", 6)])
def test_of_a_program_that_is_killed_the_kernel_says_how(run: Callable[..., Said], source: str, number: int) -> None:
    said = run(source)

    assert (said.ended, said.kind, said.head["exit"]) == (run_monitor.EXITED, 0, {"signal": number}), said


def test_a_program_that_an_exception_ended_has_raised_it(run: Callable[..., Said]) -> None:
    said = run("throw new RangeError('broken');")

    assert (said.ended, said.kind) == (run_monitor.EXITED, protocol.RAISED), said
    assert said.about["error"] == {"type": "RangeError", "message": "broken"}


def test_what_a_program_says_of_its_exception_is_bounded_and_not_believed_in_another_shape(
    run: Callable[..., Said],
) -> None:
    long = run(
        "answer({exception: {type: 'x'.repeat(9000), message: 'y'.repeat(9000), failures: []}}); process.exit(1)"
    )
    odd = run("answer({exception: {type: 7, message: 'y', failures: [['fs', null]]}}); process.exit(1)")

    assert {name: len(text) for name, text in long.about["error"].items()} == {"type": 200, "message": 2000}
    assert odd.kind == protocol.EXITED


def test_a_program_that_does_not_end_is_ended(run: Callable[..., Said]) -> None:
    said = run("process.on('SIGTERM', () => {}); for (;;) {}", limits={"wall_ms": 1500})

    assert (said.ended, said.clean) == (run_monitor.TIMED_OUT, False)


def test_a_program_that_answers_too_much_is_ended(run: Callable[..., Said]) -> None:
    said = run("answer('x'.repeat(5_000_000)); for (;;) {}", limits={"result_bytes": 100_000})

    assert said.kind == protocol.TOO_LARGE, said


# Each tries to say more than its own result, or to reach what it was not given.
FORGERIES = {
    "frames where it may write": (
        "const fs = require('fs');\n"
        "const frame = Buffer.from('SX\\x04\\x08' + 'x'.repeat(60));\n"
        "for (const fd of [1, 2, 4, 5, 6]) try { fs.writeSync(fd, frame); } catch {}\n"
        "answer('mine');"
    ),
    "the channel's socket": (
        "const socket = require('net').connect('/c/s');\n"
        "socket.on('error', (error) => answer('mine')).on('connect', () => answer('in'));"
    ),
    "the supervisor's descriptors": (
        "const fs = require('fs');\nlet found = 'mine';\n"
        "for (const pid of [1, 2, 3]) for (let fd = 0; fd < 64; fd++)\n"
        "  try { fs.openSync(`/proc/${pid}/fd/${fd}`, 'w'); found = 'in'; } catch {}\n"
        "answer(found);"
    ),
    "the supervisor's memory": (
        "const fs = require('fs');\nlet found = 'mine';\n"
        "for (const pid of [1, 2, 3]) try { fs.openSync(`/proc/${pid}/mem`, 'r+'); found = 'in'; } catch {}\nanswer(found);"
    ),
    "everybody's end": (
        "for (const pid of [-1, 1, 2, 3]) try { process.kill(pid, 'SIGKILL'); } catch {}\nanswer('mine');"
    ),
    "another program": (
        "const {spawnSync} = require('child_process');\n"
        "const done = spawnSync('/usr/local/bin/sandbox-python', ['-c', '1']);\n"
        "answer(done.error ? 'mine' : 'in');"
    ),
    "a program of its own": (
        "const fs = require('fs');\nconst path = process.env.TMPDIR + '/mine';\n"
        "fs.copyFileSync('/usr/local/bin/sandbox-python', path);\n"
        "fs.chmodSync(path, 0o755);\nconst done = require('child_process').spawnSync(path, ['-c', '1']);\n"
        "answer(done.error ? 'mine' : 'in');"
    ),
    "its package": "try { require('fs').writeFileSync('main.js', ''); answer('in'); } catch { answer('mine'); }",
    "a host": (
        "require('net').connect(80, '192.0.2.1').on('error', () => answer('mine')).on('connect', () => answer('in'));"
    ),
}


@pytest.mark.attack
@pytest.mark.parametrize("what", FORGERIES)
def test_a_program_can_only_choose_its_own_result(run: Callable[..., Said], what: str) -> None:
    said = run(FORGERIES[what])

    assert (said.ended, said.value) == (run_monitor.EXITED, "mine"), said


@pytest.mark.attack
def test_what_a_program_leaves_running_is_ended_with_its_box(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    source = ANSWER + (
        "if (process.argv[2]) for (;;) {}\n"
        "require('child_process').spawn('/usr/bin/node', ['main.js', 'stay'], {detached: true, stdio: 'ignore'}).unref();\n"
        "answer(1); process.exit(0);"
    )
    with DrivenBox(tmp_path, image=image_name(kind=NODE)) as box:
        box.load({}, level="single", program=PROGRAM, more={"tool/main.js": source})
        said = box.call()

        assert said.clean is False
        assert json.dumps(said.value) == "1"
        assert box.is_gone()

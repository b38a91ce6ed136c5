"""One real box, driven directly: what a profile lets a call reach is there, exactly that, and nothing of it is left."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import protocol, run_monitor
from tests.contracts.test_box import LEVELS, REUSED, box_of
from tests.support.box_driver import ROOMY, DrivenBox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["box_of"]
PYTHON = "/usr/local/bin/sandbox-python"

# -- files

TRIES = """
import os
def tried(act):
    try: return act()
    except OSError as error: return error.errno
def run(path):
    new, moved = path + "/new", path + "/moved"
    return {
        "read": tried(lambda: open(path + "/given").read()),
        "list": tried(lambda: sorted(os.listdir(path))),
        "write": tried(lambda: os.write(os.open(path + "/given", os.O_WRONLY), b"x")),
        "truncate": tried(lambda: os.truncate(path + "/given", 0)),
        "create": tried(lambda: os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL))),
        "folder": tried(lambda: os.mkdir(path + "/folder")),
        "link": tried(lambda: os.symlink("/p", path + "/link")),
        "move": tried(lambda: os.rename(new, moved)),
        "delete": tried(lambda: os.unlink(path + "/given")),
        "run": tried(lambda: os.execv(path + "/given", ["given"])),
        "beside": tried(lambda: os.listdir("/data")),
    }
"""
NO, MISSING = 13, 2
NOTHING = dict.fromkeys(
    ("read", "list", "write", "truncate", "create", "folder", "link", "move", "delete", "beside"), NO
) | {"run": 1}


@pytest.mark.req("SVC-10")
@pytest.mark.parametrize("level", REUSED)
@pytest.mark.parametrize(
    ("actions", "lets"),
    [
        (["read"], {"read": "given"}),
        (["list"], {"list": ["given"]}),
        (["write"], {"write": 1, "truncate": None}),
        (["create"], {"write": 1, "truncate": None, "create": None, "folder": None}),
        (["delete"], {"delete": None}),
        (["create", "delete"], {"write": 1, "truncate": None, "create": None, "folder": None, "move": None, "delete": None}),
        (["exec"], {}),
    ],
)  # fmt: skip
def test_files_may_be_used_as_the_rule_says_and_in_no_other_way(
    box_of: Callable[..., DrivenBox], level: str, actions: list[str], lets: dict[str, Any]
) -> None:
    box = box_of(data=True)
    box.load({"main": TRIES}, level=level, fs=[{"path": "/data/a", "kind": "tree", "actions": actions}])

    said = box.call(path="/data/a", inputs={"/data/a/given": b"given"})

    value = dict(said.value)
    if value["create"] == NO and value["move"] == MISSING:
        value["move"] = NO
    assert value == NOTHING | lets
    assert said.clean


COPIES = """
import os
def run():
    text = open("/data/in/a.txt").read()
    os.makedirs("/data/out/deep")
    open("/data/out/deep/b.txt", "w").write(text.upper())
    return [text, sorted(os.listdir("/data/in"))]
"""


@pytest.mark.parametrize("level", LEVELS)
def test_files_go_in_and_out_and_nothing_of_them_is_left(box_of: Callable[..., DrivenBox], level: str) -> None:
    box = box_of(data=True, limits=replace(ROOMY, files=5))
    rules = [
        {"path": "/data/in", "kind": "tree", "actions": ["read", "list"]},
        {"path": "/data/out", "kind": "tree", "actions": ["create"]},
    ]
    box.load({"main": COPIES}, level=level, fs=rules)

    for number in range(2 if level in REUSED else 1):
        said = box.call(inputs={"/data/in/a.txt": f"text {number}".encode()})
        assert said.value == [f"text {number}", ["a.txt"]], said
        assert said.files == {"/data/out/deep/b.txt": f"TEXT {number}".encode()}
        assert (said.head["skipped"], said.head["gone"], said.clean) == ([], [], True)


@pytest.mark.parametrize("level", REUSED)
def test_of_a_single_file_only_that_one_is_opened(box_of: Callable[..., DrivenBox], level: str) -> None:
    box = box_of(data=True)
    rules = [{"path": "/data/a/one", "kind": "file", "actions": ["read"]}]
    source = (
        "def run():\n    got = []\n    for name in ('one', 'two'):\n"
        "        try: got.append(open('/data/a/' + name).read())\n        except OSError as error: got.append(error.errno)\n"
        "    return got"
    )
    box.load({"main": source}, level=level, fs=rules)

    assert box.call(inputs={"/data/a/one": b"1", "/data/a/two": b"2"}).value == ["1", NO]


STRAYS = """
import os, time
def run():
    open("/data/a/out", "w").write("result")
    if os.fork() == 0:
        os.closerange(0, 64)
        time.sleep(60)
    return "stored"
"""


@pytest.mark.parametrize("level", LEVELS)
def test_the_files_of_a_call_are_taken_though_it_has_left_a_process_behind(
    box_of: Callable[..., DrivenBox], level: str
) -> None:
    box = box_of(data=True, limits=replace(ROOMY, files=5))
    box.load({"main": STRAYS}, level=level, fs=[{"path": "/data/a", "kind": "tree", "actions": ["create"]}])

    said = box.call()

    assert (said.value, said.files, said.head["skipped"]) == ("stored", {"/data/a/out": b"result"}, []), said
    assert said.clean == (level == "fresh")  # whose processes end with the first


def test_a_file_that_has_no_place_stops_the_call_before_it_begins(box_of: Callable[..., DrivenBox]) -> None:
    box = box_of(data=True)
    box.load({"main": "def run(): return 1"}, fs=[{"path": "/data/a", "kind": "tree", "actions": ["read"]}])

    said = box.call(inputs={"/etc/passwd": b""})

    assert (said.head["started"], said.report, said.clean) == (False, b"", False)
    assert "laid out" in said.head["why_not"]
    assert box.is_gone()


# -- programs


@pytest.mark.req("SVC-10")
@pytest.mark.parametrize("level", REUSED)
def test_only_a_program_that_the_profile_names_may_be_run(box_of: Callable[..., DrivenBox], level: str) -> None:
    source = (
        "import subprocess\ndef run(path):\n"
        "    return subprocess.run([path, '-I', '-S', '-c', 'print(6 * 7)'], capture_output=True).stdout.decode()"
    )
    may, may_not = box_of(), box_of()
    may.load({"main": source}, level=level, proc=[PYTHON])
    may_not.load({"main": source}, level=level, proc=["/usr/bin/true"])

    allowed, refused = may.call(path=PYTHON), may_not.call(path=PYTHON)

    assert (allowed.value, allowed.about["attempts"], allowed.clean) == ("42\n", [], True)
    assert (refused.kind, refused.about["error"]["blocked"]) == (protocol.BLOCKED, "proc")
    assert refused.about["attempts"] == [f"proc:{PYTHON}"]


def test_what_a_call_brought_or_made_is_never_run(box_of: Callable[..., DrivenBox]) -> None:
    source = (
        "import os, shutil\ndef run():\n    got = []\n    for place in ('/w/x', '/data/a/x'):\n"
        f"        shutil.copyfile(os.path.realpath('{PYTHON}'), place); os.chmod(place, 0o755)\n"
        "        try: os.execv(place, [place, '-V'])\n        except OSError as error: got.append(error.errno)\n    return got"
    )
    box = box_of(data=True)
    rules = [{"path": "/data/a", "kind": "tree", "actions": ["create", "write", "read", "exec"]}]
    box.load({"main": source}, proc=[PYTHON], fs=rules)

    assert box.call().value == [NO, NO]


PROGRAM = """
import json, os, sys
arguments = json.load(sys.stdin)
settings = json.load(os.fdopen(int(os.environ["TOOLHUB_SETTINGS_FD"])))
call = json.loads(os.environ["TOOLHUB_CALL"])
print("a log line")
os.write(4, b'{"fraction": 0.5, "message": ""}\\\\n')
os.write(3, json.dumps({
    "sum": sum(arguments["numbers"]), "region": settings["config"]["region"], "secret": settings["secrets"]["API_TOKEN"][-6:],
    "call": call["call_id"], "cwd": os.getcwd(),
    "secrets in the environment": [name for name, value in os.environ.items() if "secret" in value],
}).encode())
sys.exit(arguments.get("code", 0))
"""


@pytest.mark.parametrize("level", ["single", "cold"])
def test_a_tool_may_be_a_program(box_of: Callable[..., DrivenBox], level: str) -> None:
    box = box_of()
    program = {"argv": [PYTHON, "-I", "-S", "main.py"]}
    box.load({"main": PROGRAM.replace("\\\\n", "\\n")}, level=level, program=program)

    said = box.call(numbers=[1, 2, 3], stream=True)

    assert said.kind == protocol.RETURNED, said
    assert said.value == {
        "sum": 6,
        "region": "eu",
        "secret": "tenant",
        "call": "inv_test",
        "cwd": "/p/tool",
        "secrets in the environment": [],
    }
    assert said.stdout == b"a log line\n"
    assert ("progress", b'{"fraction": 0.5, "message": ""}\n') in box.events


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("raise SystemExit(3)", protocol.EXITED, "exit code 3"),
        ("import os; [os.write(3, b'1' * 65536) for _ in range(100)]", protocol.TOO_LARGE, "bytes"),
        ("import os; os.execv('/usr/bin/env', ['env'])", protocol.EXITED, "exit code 1"),
        ("pass", protocol.EXITED, "exit code 0"),
    ],
)
def test_a_program_that_fails_has_no_result(
    box_of: Callable[..., DrivenBox], source: str, kind: int, message: str
) -> None:
    box = box_of()
    box.load({"main": source}, level="single", program={"argv": [PYTHON, "-I", "-S", "main.py"]})

    said = box.call()

    assert (said.kind, said.value) == (kind, None), said
    assert message in said.about["error"].get("message", "")


def test_a_program_that_a_signal_ends_dies_as_a_tool_does(box_of: Callable[..., DrivenBox]) -> None:
    box = box_of()
    box.load({"main": "import os; os.abort()"}, level="single", program={"argv": [PYTHON, "-I", "-S", "main.py"]})

    said = box.call()

    assert (said.kind, said.value, said.ended, said.head["exit"]) == (0, None, run_monitor.EXITED, {"signal": 6})


def test_a_program_that_is_not_there_has_no_result(box_of: Callable[..., DrivenBox]) -> None:
    box = box_of()
    box.load({"main": ""}, level="single", program={"argv": ["/usr/bin/no-such-program"]})

    said = box.call()

    assert (said.kind, said.ended) == (protocol.EXITED, run_monitor.EXITED)
    assert b"no-such-program" in said.stderr


# -- the way out


class Echo:
    """Stands where the gate stands: sends back what comes."""

    def __init__(self, folder: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "egress"))
        (folder / "egress").chmod(0o666)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(connection.recv(1000).upper())

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


GOES_OUT = """
import os, socket
def run(port):
    got = [os.environ.get("HTTPS_PROXY"), os.environ.get("http_proxy")]
    for address in (("127.0.0.1", 3128), ("127.0.0.1", port), ("192.0.2.1", 443)):
        try:
            with socket.create_connection(address, 2) as connection:
                connection.sendall(b"hello")
                got.append(connection.recv(100).decode())
        except OSError as error:
            got.append(error.errno)
    with socket.socket() as server:
        try: server.bind(("127.0.0.1", 0)); got.append("bound")
        except OSError as error: got.append(error.errno)
    return got
"""


@pytest.mark.req("SVC-10")
@pytest.mark.parametrize("level", LEVELS)
def test_with_a_way_out_a_tool_reaches_the_relay_and_nothing_else(box_of: Callable[..., DrivenBox], level: str) -> None:
    gates: list[Echo] = []
    box = box_of(before=lambda folder: gates.append(Echo(folder)))
    box.load({"main": GOES_OUT}, level=level, net=True)

    for _ in range(2 if level in REUSED else 1):
        said = box.call(port=3129)
        proxy = "http://127.0.0.1:3128"
        assert said.value == [proxy, proxy, "HELLO", NO, NO, NO], said
        assert "net:127.0.0.1:3128" not in said.about["attempts"]
        assert said.clean
    gates[0].close()


def test_without_a_way_out_the_relay_is_not_to_be_reached(box_of: Callable[..., DrivenBox]) -> None:
    gates: list[Echo] = []
    box = box_of(before=lambda folder: gates.append(Echo(folder)))
    box.load({"main": GOES_OUT})

    said = box.call(port=3129)

    assert said.kind == protocol.BLOCKED, said
    assert "net:127.0.0.1:3128" in said.about["attempts"]
    gates[0].close()

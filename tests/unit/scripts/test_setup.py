"""Setup: does the set-up notice what is there, touch nothing that is not its own, and say what to do?"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from scripts.provision import console, engine, hub, packages, peers, services, venv
from scripts.provision.console import SetupError
from scripts.provision.processes import end_process, find_listener, find_pid, identify_process, is_free, only_one

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(2, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)",
]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(SLEEP)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


# Peers


def test_each_peer_that_is_fetched_ahead_has_one_lock() -> None:
    locks = [path.stem for folder in venv.CLIENTS for path in folder.glob("*.txt")]

    assert {name: locks.count(name) for name in peers.OF_EACH_RUN} == dict.fromkeys(peers.OF_EACH_RUN, 1)


def test_a_peer_that_cannot_be_fetched_ahead_keeps_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def fail(name: str) -> None:
        asked.append(name)
        raise SetupError("The network is away.")

    monkeypatch.setattr(peers, "ensure_node_modules", fail)
    monkeypatch.setattr(peers, "ensure_python", asked.append)
    monkeypatch.setattr(peers, "ensure_django_tests", lambda: asked.append("django"))

    peers.fetch_ahead()

    assert asked == ["helm", "npm", "aimock", *peers.OF_EACH_RUN, "django"]
    assert capsys.readouterr().out.count("not fetched ahead, so a test will try again: The network is away.") == 3


# Processes


def test_a_process_is_found_by_its_name_while_it_lives(sleeper: subprocess.Popen[bytes]) -> None:
    name = identify_process(sleeper.pid)
    assert find_pid(name) == sleeper.pid

    sleeper.kill()
    sleeper.wait()

    assert find_pid(name) is None


def test_another_process_with_the_same_id_is_not_the_same_one(sleeper: subprocess.Popen[bytes]) -> None:
    assert find_pid(f"{sleeper.pid} 12345") is None


@pytest.mark.parametrize("name", ["", "kept", "0", "12x 3"])
def test_what_is_no_process_name_finds_none(name: str) -> None:
    assert find_pid(name) is None


def test_a_process_that_ignores_the_first_signal_gets_the_next() -> None:
    process = subprocess.Popen(STUBBORN, stdout=subprocess.PIPE)
    assert process.stdout
    with process.stdout:
        process.stdout.readline()

    end_process(identify_process(process.pid), signal.SIGINT, signal.SIGTERM, patience_s=0.2)

    assert process.poll() is not None


def test_what_the_set_up_starts_keeps_the_bytecode_of_what_it_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")

    venv.keep_bytecode()

    asked = [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)"]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_busy_port_is_noticed_and_its_owner_named(listening: int) -> None:
    assert not is_free("127.0.0.1", listening)
    assert f"process {os.getpid()} " in find_listener(listening)


def test_the_second_who_wants_to_do_a_thing_waits_for_the_first() -> None:
    order: list[str] = []
    inside = threading.Event()

    def first() -> None:
        with only_one("test-setup"):
            inside.set()
            time.sleep(0.2)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait()
    with only_one("test-setup"):
        order.append("second")
    thread.join()

    assert order == ["first", "second"]


# The hub


def test_a_busy_port_leads_to_the_next_free_one_and_is_said(listening: int, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = hub._bind(f"127.0.0.1:{listening}")

    assert int(chosen.rpartition(":")[2]) > listening
    assert f"port {listening} is busy (used by process {os.getpid()}" in capsys.readouterr().out


@pytest.mark.parametrize("wanted", ["8000", "127.0.0.1:", "127.0.0.1:http"])
def test_an_address_that_is_none_is_refused_with_an_example(wanted: str) -> None:
    with pytest.raises(SetupError, match=r"TOOLHUB_BIND=127\.0\.0\.1:8000"):
        hub._bind(wanted)


def test_a_second_hub_on_the_same_data_is_refused(tmp_path: Path) -> None:
    handle = hub._claim(tmp_path)
    try:
        with pytest.raises(SetupError, match=f"process {os.getpid()}"):
            hub._claim(tmp_path)
    finally:
        os.close(handle)

    os.close(hub._claim(tmp_path))


# Services of the tests


def test_what_a_run_that_was_cut_off_left_is_ended_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeper: subprocess.Popen[bytes]
) -> None:
    monkeypatch.setattr(services, "get_runs_folder", lambda: tmp_path)
    left = tmp_path / "1-1"  # process 1 did not start in the first tick
    left.mkdir()
    (left / "processes").write_text(json.dumps([identify_process(sleeper.pid)]))

    services.sweep_runs()

    assert sleeper.poll() is not None
    assert not left.exists()


def test_a_run_that_goes_on_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeper: subprocess.Popen[bytes]
) -> None:
    monkeypatch.setattr(services, "get_runs_folder", lambda: tmp_path)
    for name in (identify_process(os.getpid()).replace(" ", "-"), services.KEPT):
        (tmp_path / name).mkdir()
        (tmp_path / name / "processes").write_text(json.dumps([identify_process(sleeper.pid)]))

    services.sweep_runs()

    assert sleeper.poll() is None
    assert len(list(tmp_path.iterdir())) == 2
    assert services.find_test_runs() == [os.getpid()]


@pytest.mark.parametrize(
    ("chosen", "installed", "known", "needed"),
    [
        ("/opt/chrome", [], ["chromium-headless-shell", "chromium"], []),
        ("", ["chromium-headless-shell"], [], []),
        ("", ["chromium"], ["chromium-headless-shell", "chromium"], ["chromium-headless-shell"]),
        ("", [], ["chromium"], ["chromium"]),
        ("", [], [], ["chromium"]),
    ],
)
def test_a_browser_is_installed_where_none_is_that_draws_without_a_window(
    chosen: str, installed: list[str], known: list[str], needed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLHUB_TEST_CHROMIUM", chosen)
    monkeypatch.setattr(shutil, "which", dict.fromkeys([*installed, "docker", "dockerd"], "/usr/bin/it").get)
    monkeypatch.setattr(packages, "is_known", known.__contains__)

    assert [name for name in services.needed_packages() if "chromium" in name] == needed


# The engine and the packages


def test_an_engine_elsewhere_that_does_not_answer_is_not_replaced_by_one_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")

    with pytest.raises(SetupError, match="DOCKER_HOST=unix:///nowhere"):
        engine.ensure_engine()


def test_a_socket_file_without_a_listener_is_known_as_left_over(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert engine.socket_is_held(path)

    assert not engine.socket_is_held(path)


def test_an_engine_that_ended_and_that_nobody_waited_for_does_not_run(tmp_path: Path) -> None:
    program = tmp_path / "engine-of-test"
    shutil.copy("/bin/cat", program)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()  # it has its name now: a process has it some moments after it was begun
        assert engine.find_processes(program.name) == [process.pid]
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie

        assert engine.find_processes(program.name) == []


def test_packages_that_are_there_are_not_missing() -> None:
    assert packages.find_missing(("dpkg", "bash", "no-such-package-of-toolhub")) == ["no-such-package-of-toolhub"]


def test_a_package_is_known_by_the_lists_that_are_here() -> None:
    assert [packages.is_known(name) for name in ("bash", "no-such-package-of-toolhub")] == [True, False]


def test_without_root_and_sudo_a_person_is_told_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", {"apt-get": "/usr/bin/apt-get"}.get)
    monkeypatch.setattr(packages, "find_missing", list)

    with pytest.raises(SetupError, match=r"there is no sudo here\.\nType \(as root\):  apt-get install docker\.io"):
        packages.ensure_packages("docker.io", purpose="The Docker engine")


# Telling


def test_a_step_says_what_it_does_and_how_long_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    with console.announce_step("baking", "bread baked"):
        pass

    assert capsys.readouterr().out == "           baking …\n[   0.0 s] bread baked\n"


def test_a_program_that_fails_shows_the_end_of_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "LOG", tmp_path / "log" / "setup.log")

    with pytest.raises(SetupError, match=r"exit status 3:\n    no flour"):
        console.run_program(["sh", "-c", "echo no flour; exit 3"])

    assert "no flour" in (tmp_path / "log" / "setup.log").read_text()


def test_a_new_environment_holds_no_package_that_is_in_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "venv"
    monkeypatch.setattr(venv, "VENV", made)
    monkeypatch.setattr(venv, "PYTHON", made / "bin" / "python")

    venv._create()

    found = subprocess.run([made / "bin" / "pip", "list", "--format=json"], capture_output=True, text=True, check=True)
    assert {each["name"] for each in json.loads(found.stdout)} <= venv.read_pins(venv.RUN_LOCK).keys()

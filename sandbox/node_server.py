"""Node server: how a server of a package of npm answers one call.

There is no process to fork such a server from. It is started in a box that serves one call: in the call, or before it, initialised and
stopped until the call comes, where nothing of the call decides what it is started with and it may reach nothing outside. What it
prints until there is a call is kept for that call's log.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress

from sandbox.mcp_results import ask_tool, read_list, read_result
from sandbox.package import DEPENDENCIES
from sandbox.programs import NODE
from sandbox.server_environment import read_environment
from sandbox.server_process import end_process
from unitools import runtime
from unitools.mcp_conversation import PROGRESS_TOKEN, ServerEnded, ServerUnfit
from unitools.mcp_pipes import PipeConversation
from unitools.npm_names import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

_END_MS = 300  # for a server to end by itself when its input is closed
_BEGIN_S = 10.0
_PING_S = 1.0
_MAX_HELD, _MAX_HELD_BYTES = 100, 64 * 1024
_PIECE_BYTES = 1 << 16
_MAX_ABOUT_BYTES = 1 << 20
_MIB = 1 << 20


class NodeServer:
    """``start`` is the manifest's ``implementation.server`` with the ``package`` that brings it: ``LookupError`` when that one brings
    no such program."""

    def __init__(self, start: dict[str, Any], *, memory_bytes: int, has_files: bool) -> None:
        self._start, self._memory_bytes = start, memory_bytes
        self._end_ms = _END_MS if has_files else 0  # else nothing that it still does is kept
        self._begun: _Started | None = None
        self._begun_at = 0.0

    def begin(self, config: Mapping[str, Any]) -> None:
        """Before there is a call. Raises what it fails with."""
        self._begun_at = time.monotonic()
        started = self._launch(config.__getitem__, _refuse_secret)
        try:
            started.talk.set_deadline(time.monotonic() + _BEGIN_S)
            started.initialize()
            # Node.js compiles what answers a request when the first one comes: that is paid for now, not in the call.
            started.talk.set_deadline(time.monotonic() + _PING_S)
            started.talk.ping()
        except BaseException:
            started.end()
            raise
        started.talk.set_deadline(None)
        started.stop()
        self._begun = started

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Those that lead to a server that was begun."""
        return self._begun.descriptors if self._begun is not None else ()

    def waited_ms(self) -> int | None:
        """It goes on. For how long it has been there; None: the call begins its own, also where it has ended while it waited."""
        if self._begun is not None and (self._begun.talk.is_over() or not self._begun.go_on()):
            self.drop()
        return None if self._begun is None else round((time.monotonic() - self._begun_at) * 1000)

    def drop(self) -> None:
        if self._begun is not None:
            begun, self._begun = self._begun, None
            begun.end()

    def find_entry(self, head: dict[str, Any]) -> Callable[..., Any]:
        find_program(self._start["script"], self._start["package"])
        asks = head["asks"]
        if not asks:
            return self._list_tools
        return lambda **arguments: self._call_tool(asks, arguments)

    def _call_tool(self, asks: dict[str, Any], arguments: dict[str, Any]) -> Any:
        params = {"name": asks["tool"], "arguments": arguments, "_meta": {"progressToken": PROGRESS_TOKEN}}
        result = self._ask(lambda started: ask_tool(started.talk, params))
        return read_result(result, structured=asks["structured"])

    def _list_tools(self) -> dict[str, Any]:
        return self._ask(lambda started: read_list(started.talk, started.initialize()))

    def _ask(self, ask: Callable[[_Started], dict[str, Any]]) -> dict[str, Any]:
        begun, self._begun = self._begun, None
        started = begun or self._launch(lambda name: runtime.config()[name], runtime.secret)
        ended = False
        try:
            started.release()
            started.initialize()
            return ask(started)
        except ServerEnded:
            ended = True
            started.await_end()
            code = os.waitstatus_to_exitcode(started.end())
            raise ServerUnfit(f"The server ended with exit code {code} before it answered.") from None
        finally:
            if not ended:
                started.end()

    def _launch(self, config: Callable[[str], Any], secret: Callable[[str], str]) -> _Started:
        program = find_program(self._start["script"], self._start["package"])
        # Memory ends where the profile says, as for any tool, and not where Node.js guesses.
        command = [
            NODE,
            f"--max-old-space-size={self._memory_bytes // _MIB}",
            program,
            *self._start.get("arguments", ()),
        ]
        values = read_environment(self._start.get("environment", ()), config, secret)
        environment = dict(os.environ) | {"NODE_USE_ENV_PROXY": "1"} | values
        return _Started(command, environment, end_ms=self._end_ms)


class _Started:
    """One process of the server, and what is said with it."""

    def __init__(self, command: list[str], environment: dict[str, str], *, end_ms: int) -> None:
        self._end_ms = end_ms
        its_input, self._to_it = os.pipe()
        self._from_it, its_output = os.pipe()
        self._errors, its_errors = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _become(command, environment, (its_input, its_output, its_errors))
        with suppress(OSError):  # it does so too: whichever of the two is first
            os.setpgid(self._pid, self._pid)
        for fd in (its_input, its_output, its_errors):
            os.close(fd)
        os.set_blocking(self._errors, False)
        self._held: list[Callable[[], None]] | None = []
        self._held_bytes = 0
        self._begun: dict[str, Any] | None = None
        self.talk = PipeConversation(
            self._from_it,
            self._to_it,
            log=lambda line: self._say(lambda: print(line, flush=True), len(line)),
            note=lambda line: self._say(lambda: runtime.warn(line), len(line)),
            progress=runtime.progress,
        )
        self.talk.watch_beside(self._errors, self._copy_errors)

    @property
    def descriptors(self) -> tuple[int, ...]:
        return self._to_it, self._from_it, self._errors

    def initialize(self) -> dict[str, Any]:
        """The handshake, once."""
        if self._begun is None:
            self._begun = self.talk.initialize()
        return self._begun

    def stop(self) -> None:
        """It takes no part in anything until it goes on, nor do programs that it has started: a timer of it would burn the processor
        for as long as it waits."""
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGSTOP)

    def go_on(self) -> bool:
        """False where it has ended meanwhile."""
        with suppress(ChildProcessError, ProcessLookupError):
            if os.waitpid(self._pid, os.WNOHANG) == (0, 0):
                os.killpg(self._pid, signal.SIGCONT)
                return True
        return False

    def release(self) -> None:
        """There is a call now: what is said belongs to it."""
        held, self._held = self._held or [], None
        for say in held:
            say()

    def await_end(self) -> None:
        """It has closed its output, and will be asked how it ended."""
        self._end_ms = _END_MS

    def end(self) -> int:
        """By itself where it has a moment for that, else whatever it is doing. Returns how it ended."""
        os.close(self._to_it)
        self.talk.drain(self._end_ms)
        ended = end_process(self._pid, within_ms=self._end_ms)
        if self._held is None:
            self._copy_errors()
        os.close(self._from_it)
        os.close(self._errors)
        return ended

    def _say(self, say: Callable[[], None], size: int) -> None:
        if self._held is None:
            say()
        elif len(self._held) < _MAX_HELD and self._held_bytes < _MAX_HELD_BYTES:
            self._held_bytes += size
            self._held.append(say)

    def _copy_errors(self) -> bool:
        """What it says on its stderr goes to the call's. False when there will be no more."""
        try:
            while piece := os.read(self._errors, _PIECE_BYTES):
                self._say(lambda said=piece: _write(said), len(piece))  # type: ignore[misc]
        except BlockingIOError:
            return True
        return False


def _write(said: bytes) -> None:
    view = memoryview(said)
    with suppress(OSError):
        while view:
            view = view[os.write(2, view) :]


def _become(command: list[str], environment: dict[str, str], ends: tuple[int, int, int]) -> NoReturn:
    try:
        os.setpgid(0, 0)
        high = [os.dup(fd) for fd in ends]  # so that none stands where another is to be
        for place, fd in enumerate(high):
            os.dup2(fd, place, inheritable=True)
        os.closerange(3, 1 << 20)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # Python has its own mind about them
        os.execve(command[0], command, environment)
    except OSError as error:
        with suppress(OSError):
            os.write(2, f"{command[0]}: {error}\n".encode())
    finally:
        os._exit(127)


def _refuse_secret(name: str) -> str:
    raise LookupError(name)


def find_program(name: str, package: str, folder: str = DEPENDENCIES) -> str:
    """The file of a program that this package's ``bin`` names. ``LookupError`` when it has none of that name."""
    plain = package.removeprefix(PREFIX)
    place = f"{folder}/node_modules/{plain}"
    try:
        with open(f"{place}/package.json", "rb") as file:
            said = json.loads(file.read(_MAX_ABOUT_BYTES)).get("bin")
    except (OSError, ValueError, AttributeError, RecursionError):
        said = None
    programs = {plain.rpartition("/")[2]: said} if isinstance(said, str) else said if isinstance(said, dict) else {}
    found = programs.get(name)
    if (
        not isinstance(found, str)
        or ".." in found.split("/")
        or "\0" in found
        or not os.path.isfile(f"{place}/{found}")
    ):
        raise LookupError(f"The package {plain} brings no program {name!r}.")
    return os.path.normpath(f"{place}/{found}")

"""Call: how one tool is called.

This is the tool's own process, from the fork to its last byte. Until the walls are up it runs trusted code only; from
the import of the tool on, everything in this process belongs to the tool, and what it says is taken as the tool's
word.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from _socket import socket
from contextlib import suppress
from functools import partial

from sandbox import clock, confinement, protocol
from sandbox.ipc import WORD_BYTES, receive_message, receive_work, send_message
from sandbox.isolation import CallIsolation
from unitools import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from sandbox.access_attempts import AccessAttempts
    from sandbox.isolation import BoxIsolation
    from sandbox.next_server import NextServer
    from sandbox.node_server import NodeServer

_closerange = os.closerange  # now: what a dependency puts in its place later leaves nothing open
_VALUES = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
_REPORTS = json.JSONEncoder(ensure_ascii=False)
REPORT_FD, PROGRESS_FD, _OWN_END = 3, 4, 5
_PIPES = 4
_BEYOND_ALL = 1 << 20  # of descriptors
_MAX_MESSAGE_CHARS = 2000
_MAX_NAME_CHARS = 200


def serve_one(rooms: BoxIsolation, descriptor: int) -> NoReturn:
    """Raise the walls, wait for the call, then be it. On ``descriptor`` goes one message: "up", or why not."""
    try:
        end = _take_places(descriptor)
        try:
            room = CallIsolation(rooms)
            data = room.enter()
            call = WaitingCall(rooms, end)
            if rooms.is_on_node:
                call.choose_node_server()
            send_message(end, protocol.WALLS_ARE_UP, (data,) if data >= 0 else ())
            _close_from(_OWN_END + 1, confinement.OUT_OF_THE_WAY, kept=call.kept)  # beyond: until the last wall is up
            if rooms.begins_ahead:
                call.begin_ahead()
            work = call.receive()
            room.close()
        except BaseException as error:
            end.send(f"{type(error).__name__}: {error}".encode(errors="replace")[:_MAX_MESSAGE_CHARS])
            os._exit(1)
        head, (arguments, settings, *contents) = protocol.unpack(work)
        head["sent_files"] = list(zip(head.get("sent_files", ()), contents, strict=True))
        end.close()
        if not rooms.begins_ahead:  # else all is closed by now that the server of the call does not need
            _close_from(PROGRESS_FD + 1, kept=call.kept)
        head["limits"] = rooms.limits
        write_all(REPORT_FD, _report_of(call, rooms, head, arguments, settings))
        _closerange(1, PROGRESS_FD + 1)  # all at once: who watches is woken once
    finally:
        os._exit(0)


class WaitingCall:
    """The call that this process is for, from when it may come."""

    def __init__(self, rooms: BoxIsolation, end: socket) -> None:
        self._rooms, self._end = rooms, end
        self._work = b""
        self._is_loaded = False
        self.server: NextServer | NodeServer | None = None

    @property
    def kept(self) -> Sequence[int]:
        """The descriptors that lead to a server that is there."""
        return self.server.descriptors if self.server is not None else ()

    def choose_node_server(self) -> None:
        """What answers it is of a package of npm; begun already where the box was loaded for that."""
        rooms = self._rooms
        server: NodeServer = importlib.import_module("sandbox.node_server").NodeServer(
            rooms.server, memory_bytes=rooms.limits["memory_bytes"], has_files=bool(rooms.rules)
        )
        if rooms.begins_server:
            server.begin(rooms.settings)
        self.server = server

    def begin_ahead(self) -> None:
        """Start what answers it. Only where the walls are all up, and no call is needed for that."""
        _close_from(_OWN_END + 1)
        assert self._rooms.server is not None
        module = importlib.import_module("sandbox.next_server")  # in boxes of no other tool
        server: NextServer = module.NextServer(self._rooms.server, self._rooms.listing)
        server.make_ready(self._end.fileno(), self._take)
        self.server = server

    def receive(self) -> bytes:
        return self._work or receive_work(self._end)[0]

    def tell_loaded(self) -> None:
        """From now on the time is the tool's own."""
        if not self._is_loaded:
            self._is_loaded = True
            self._rooms.begin_run()
            write_all(REPORT_FD, protocol.IMPORTED)

    def _take(self) -> bool:
        """It comes while what answers it is being started, which is of its time now."""
        self._work = receive_work(self._end)[0]
        if protocol.unpack_head(self._work).get("replay"):
            return False
        self.tell_loaded()
        return True


def _report_of(
    call: WaitingCall, rooms: BoxIsolation, head: dict[str, Any], arguments: bytes, settings: bytes
) -> bytes:
    programs, hints, loaded = rooms.programs, rooms.hints, call.tell_loaded
    if head.get("replay") and call.server is not None:
        call.server.drop()
    waited_ms = call.server.waited_ms() if call.server is not None else None
    if programs.replaces_tool:
        loaded()
        return _report(*programs.run(head, arguments, settings, hints), None, hints)
    hints.watch()
    return answer_call(
        head,
        arguments,
        settings,
        hints,
        loaded=loaded,
        progress=lambda line: write_all(PROGRESS_FD, line),
        find_entry=_find_finder(rooms, call.server),
        tells_stack=not rooms.operation and not rooms.remote,  # it would be ours: nothing of an author's runs
        waited_ms=waited_ms,
    )


def _take_places(descriptor: int) -> socket:
    """Nothing is on 0, the call's pipes are on 1 to 4, then comes the way to the supervisor. What else is open is closed later."""
    os.dup2(descriptor, _OWN_END)
    end = socket(fileno=_OWN_END)
    message, _, pipes = receive_message(end, WORD_BYTES, _PIPES)
    if message != protocol.PIPES or len(pipes) != _PIPES:
        raise EOFError("Nothing was given.")
    for pipe, place in zip(pipes, (REPORT_FD, 1, 2, PROGRESS_FD), strict=True):
        os.dup2(pipe, place)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    return end


def _close_from(first: int, last: int = _BEYOND_ALL, *, kept: Sequence[int] = ()) -> None:
    """Close all descriptors from ``first`` to before ``last``, but for those."""
    for each in sorted(kept) if kept else ():
        if first <= each < last:
            _closerange(first, each)
            first = each + 1
    _closerange(first, last)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def set_streams() -> None:
    """What a tool prints is a log: a line is there when it ends, and no text is refused."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]


def answer_call(
    head: dict[str, Any],
    arguments: bytes,
    settings: bytes,
    hints: AccessAttempts,
    *,
    loaded: Callable[[], None],
    progress: Callable[[bytes], None],
    find_entry: Callable[[dict[str, Any]], Callable[..., Any]] | None = None,
    tells_stack: bool = True,
    waited_ms: int | None = None,
) -> bytes:
    """Load the tool, call it, and put what came of it into the bytes of a report. ``tells_stack``: where it raised, in its log.
    ``waited_ms``: for how long what answers has been there before the call; None: it began with the call."""
    streams = (sys.stdout, sys.stderr)
    said: runtime.Report | None = None
    value = b""
    error: dict[str, Any] = {}
    try:
        called = runtime.Call.from_json(head["context"] | protocol.read_json(settings))
        if head.get("replay"):
            clock.set_recorded_clock(called.now, called.seed)
        clock.seed_chance(called.seed)
        with runtime.running(called, progress=progress) as said:
            entry = (find_entry or _find_entry)(head)
            clock.seed_chance(called.seed)
            loaded()
            returned = entry(**protocol.read_json(arguments))
            if hasattr(type(returned), "__await__"):
                returned = importlib.import_module("asyncio").run(_wait_for(returned))  # large: only when it is needed
        kind, value, error = _encode(returned, head["limits"]["result_bytes"])
    except SystemExit:
        kind, error = protocol.EXITED, {"type": "SystemExit", "message": "The tool called sys.exit()."}
    except BaseException as raised:
        kind, error = _describe(raised, hints)
        if tells_stack or not isinstance(raised, runtime.DomainError):
            _log_traceback(raised)
    for stream in streams:
        _quietly(stream.flush)
    return _report(kind, value, error, said, hints, waited_ms)


def _find_entry(head: dict[str, Any]) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(importlib.import_module(head["module"]), head["entry"])
    return found


def _find_finder(
    rooms: BoxIsolation, server: NextServer | NodeServer | None
) -> Callable[[dict[str, Any]], Callable[..., Any]] | None:
    """What finds the function that answers, where it is none of a package."""
    if server is not None:
        return server.find_entry
    if rooms.operation is not None:
        return partial(_find_operation, rooms.operation)
    if rooms.remote is not None:
        return partial(_find_remote, rooms.remote)
    if rooms.server is not None:
        return partial(_find_server, rooms.server)
    return rooms.modules.find_entry if rooms.modules is not None else None


def _find_operation(operation: dict[str, Any], head: dict[str, Any]) -> Callable[..., Any]:
    """What asks the service that answers this call."""
    found: Callable[..., Any] = (
        importlib.import_module("sandbox.service_call").ServiceOperation(operation).find_entry(head)
    )
    return found


def _find_remote(remote: dict[str, Any], head: dict[str, Any]) -> Callable[..., Any]:
    """What asks the server of others that is somewhere else."""
    found: Callable[..., Any] = importlib.import_module("sandbox.remote_call").RemoteServer(remote).find_entry(head)
    return found


def _find_server(start: dict[str, Any], head: dict[str, Any]) -> Callable[..., Any]:
    """What asks the server of others that is started for this call."""
    found: Callable[..., Any] = importlib.import_module("sandbox.mcp_server").McpServer(start).find_entry(head)
    return found


async def _wait_for(returned: Any) -> Any:
    return await returned


def _encode(returned: object, most: int) -> tuple[int, bytes, dict[str, Any]]:
    try:
        value = _VALUES.encode(returned).encode("utf-8", "strict")
    except (TypeError, ValueError, RecursionError) as error:
        return protocol.BAD_RESULT, b"", {"type": type(error).__name__, "message": _message(error)}
    if len(value) > most:
        return (
            protocol.TOO_LARGE,
            b"",
            {"type": "", "message": f"The result has {len(value)} bytes, {most} are allowed."},
        )
    return protocol.RETURNED, value, {}


def _describe(raised: BaseException, hints: AccessAttempts) -> tuple[int, dict[str, Any]]:
    """Sort an exception that left the tool. Nothing on it is to be trusted: its class may override anything."""
    error: dict[str, Any] = {"type": _name(raised), "message": _message(raised)}
    try:
        if isinstance(raised, runtime.DomainError):
            details = json.loads(json.dumps(raised.details, allow_nan=False))
            return protocol.DOMAIN_ERROR, error | {"code": str(raised.code), "details": details}
        if isinstance(raised, runtime.ResultInvalid):
            pointers = json.loads(json.dumps(raised.pointers))
            return protocol.NOT_AS_DECLARED, error | {"pointers": pointers}
        if isinstance(raised, MemoryError):
            return protocol.NO_MEMORY, error
        capability = hints.blocked(raised)
        if capability:
            return protocol.BLOCKED, error | {"blocked": capability}
    except BaseException as second:
        error["message"] = f"{error['message']} (and while describing it: {_name(second)})"[:_MAX_MESSAGE_CHARS]
    return protocol.RAISED, error


def _name(raised: BaseException) -> str:
    return str(type.__getattribute__(type(raised), "__name__"))[:_MAX_NAME_CHARS]


def _message(raised: BaseException) -> str:
    try:
        text = str(raised)
        return str.__getitem__(text, slice(0, _MAX_MESSAGE_CHARS)).encode("utf-8", "replace").decode()
    except BaseException:
        return "(the exception cannot be shown as text)"


def _log_traceback(raised: BaseException) -> None:
    _quietly(lambda: sys.__excepthook__(type(raised), raised, raised.__traceback__))


def _quietly(action: Callable[[], object]) -> None:
    with suppress(BaseException):  # the tool's own streams and exceptions; it is ending anyway
        action()


def _report(
    kind: int,
    value: bytes,
    error: dict[str, Any],
    said: runtime.Report | None,
    hints: AccessAttempts,
    waited_ms: int | None = None,
) -> bytes:
    contents = b""
    try:
        left = said.artifacts if said is not None and kind == protocol.RETURNED else []
        artifacts = [{"name": name, "media_type": claim, "size": len(content)} for name, claim, content in left]
        contents = b"".join([content for _, _, content in left])
        rest = _rest(said.to_json() if said else {}, hints, error, artifacts, waited_ms)
    except BaseException as failed:
        kind, value, contents = protocol.BAD_RESULT, b"", b""
        rest = _rest({}, hints, {"type": _name(failed), "message": _message(failed)})
    if len(rest) > protocol.MAX_REPORT_BYTES:
        kind, value, contents = protocol.BAD_RESULT, b"", b""
        message = f"The report beside the result has {len(rest)} bytes, {protocol.MAX_REPORT_BYTES} are allowed."
        rest = _rest({}, hints, {"type": "", "message": message})
    return protocol.REPORT.pack(kind, len(value), len(rest)) + value + rest + contents


def _rest(
    said: dict[str, Any],
    hints: AccessAttempts,
    error: dict[str, Any],
    artifacts: list[dict[str, Any]] | None = None,
    waited_ms: int | None = None,
) -> bytes:
    # Not as ASCII: escapes could make what is allowed to a tool larger than the report may be, and lose its attempts.
    about: dict[str, Any] = {"report": said, "attempts": hints.attempts, "error": error}
    if artifacts:
        about["artifacts"] = artifacts
    if waited_ms is not None:
        about["waited_ms"] = waited_ms
    return _REPORTS.encode(about).encode()

"""Programs: those that a tool may run, and how a tool is run that is itself a program.

A program can be started only where a profile names it, or where it is the tool. The kernel is told the paths; beside them it
needs the loader that each of them names.

A tool that is a program gets the arguments as JSON on its stdin, the call's context in the environment variable
``TOOLHUB_CALL``, configuration and secrets as JSON on the descriptor that ``TOOLHUB_SETTINGS_FD`` names, and writes its
result as JSON to descriptor 3. It is started in the folder of its package, which it cannot write to. Its stdout and stderr are
logs, as always; descriptor 4 takes progress, a JSON object a line. It has succeeded when it ends with 0; else what is on
descriptor 3 may be a refusal that the caller understands: ``{"code": …, "message": …, "details": {…}}``; or the exception that
ended it: ``{"exception": {"type": …, "message": …, "failures": [["fs", "/etc/passwd", "EACCES"], …]}}``, where a failure is what
kind of thing was asked for (``fs``, ``net``, ``proc``), its name, and the kernel's word for the error. Node.js says that by itself
(:file:`program.cjs`).
"""

from __future__ import annotations

import json
import os
import signal
import struct
from contextlib import suppress

from sandbox import protocol
from sandbox.access_attempts import PACKAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sandbox.access_attempts import AccessAttempts

NODE = "/usr/bin/node"
SETTINGS_FD = 5
_ELF = b"\x7fELF\x02"
_INTERPRETER = 3  # PT_INTERP
_HEAD_BYTES = 4096
_MAX_MESSAGE_CHARS, _MAX_NAME_CHARS = 2000, 200
_OF_NODE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "program.cjs")
_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
_MAX_SCRIPTS = 4  # a script's interpreter may be a script


class Programs:
    """What may be executed in a box."""

    def __init__(self, allowed: list[str], program: dict[str, Any] | None, files: list[str]) -> None:
        self._folder = f"{PACKAGE}/{files[0].partition('/')[0]}" if files else PACKAGE
        self.argv: list[str] = list(program["argv"]) if program else []
        self.replaces_tool = bool(self.argv)
        if self.argv:
            self.argv[0] = _find(self.argv[0])
        runnable: dict[str, None] = {}
        for path in (*allowed, *self.argv[:1]):
            runnable.update(dict.fromkeys(_needed_to_run(path)))
        self.runnable = tuple(runnable)

    def run(
        self, head: dict[str, Any], arguments: bytes, settings: bytes, hints: AccessAttempts
    ) -> tuple[int, bytes, dict[str, Any]]:
        """Run the tool that is a program; returns what a report says of it: the kind, the value, the error."""
        result, result_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.chdir(self._folder)
                _become(self.argv, head, arguments, settings, result_end)
            except OSError as error:
                with suppress(OSError):
                    os.write(2, f"{self.argv[0]}: {error}\n".encode())
            finally:
                os._exit(127)
        os.close(result_end)
        most: int = head["limits"]["result_bytes"]
        value = _read(result, most)
        if len(value) > most:
            os.kill(pid, signal.SIGKILL)
            return protocol.TOO_LARGE, b"", {"type": "", "message": f"The result has more than {most} bytes."}
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code < 0:
            _die_of(-code)
        if code:
            if refusal := _refusal(value):
                return protocol.DOMAIN_ERROR, b"", refusal
            if exception := _exception(value, hints):
                return exception
        if code or not value:
            return protocol.EXITED, b"", {"type": "Exit", "message": f"The program ended with exit code {code}."}
        return protocol.RETURNED, value, {}


def _die_of(number: int) -> None:
    """As the program did, so that the kernel's word about it counts, as for any other tool."""
    signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), number)


def _exception(said: bytes, hints: AccessAttempts) -> tuple[int, bytes, dict[str, Any]] | None:
    """What a program that has failed says of the exception that ended it."""
    try:
        exception = json.loads(said)["exception"]
        kind, message = exception["type"], exception["message"]
        failures = [(what, name, word) for what, name, word in exception["failures"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not all(isinstance(each, str) for each in (kind, message, *(word for words in failures for word in words))):
        return None
    error = {"type": kind[:_MAX_NAME_CHARS], "message": message[:_MAX_MESSAGE_CHARS]}
    if blocked := hints.blocked(Exception(message)) or hints.blocked_in_program(failures):
        return protocol.BLOCKED, b"", error | {"blocked": blocked}
    return protocol.RAISED, b"", error


def _refusal(said: bytes) -> dict[str, Any] | None:
    """What a program that has failed says of it, when it is a refusal."""
    try:
        answer = json.loads(said)
        code, message, details = answer["code"], answer["message"], answer.get("details", {})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not (isinstance(code, str) and isinstance(message, str) and isinstance(details, dict)):
        return None
    return {"type": "Refusal", "message": message[:_MAX_MESSAGE_CHARS], "code": code, "details": details}


def _find(name: str) -> str:
    """The path of a program that is named without one."""
    if "/" in name:
        return name
    paths = (f"{folder}/{name}" for folder in _FOLDERS)
    return next((path for path in paths if os.access(path, os.X_OK)), name)


def _needed_to_run(path: str) -> list[str]:
    """The program, its loader; of a script the interpreter with its loader."""
    needed = []
    for _ in range(_MAX_SCRIPTS):
        needed.append(path)
        try:
            with open(path, "rb") as file:
                head = file.read(_HEAD_BYTES)
                if head.startswith(_ELF):
                    loader = _loader_of(file.fileno(), head)
                    return [*needed, loader] if loader else needed
        except OSError:
            return needed
        words = head[2:].split(b"\n", 1)[0].split() if head.startswith(b"#!") else []
        if not words:
            return needed
        path = os.fsdecode(words[0])
    return needed


def _loader_of(fd: int, head: bytes) -> str:
    (offset,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    for index in range(count):
        kind, _, start, _, _, length = struct.unpack("<IIQQQQ", os.pread(fd, 40, offset + index * size))
        if kind == _INTERPRETER:
            return os.fsdecode(os.pread(fd, length, start).rstrip(b"\0"))
    return ""


def _become(argv: list[str], head: dict[str, Any], arguments: bytes, settings: bytes, result: int) -> None:
    placed = {0: _holding(arguments), SETTINGS_FD: _holding(settings), 3: result}
    high = {place: os.dup2(fd, 100 + place) for place, fd in placed.items()}
    for place, fd in high.items():
        os.dup2(fd, place, inheritable=True)
    os.closerange(SETTINGS_FD + 1, 1 << 20)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python has its own mind about them
    environment = dict(os.environ) | {
        "TOOLHUB_CALL": json.dumps(head["context"]),
        "TOOLHUB_SETTINGS_FD": str(SETTINGS_FD),
        # Memory ends where the profile says, as for any tool, and not where Node.js guesses.
        "NODE_OPTIONS": f"--require={_OF_NODE} --max-old-space-size={head['limits']['memory_bytes'] >> 20}",
    }
    os.execve(argv[0], argv, environment)


def _holding(data: bytes) -> int:
    fd = os.memfd_create("data")
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _read(fd: int, most: int) -> bytes:
    """To the end, or until it is more than may be."""
    data = bytearray()
    while len(data) <= most and (chunk := os.read(fd, 1 << 16)):
        data += chunk
    return bytes(data)

"""Access attempts: what a tool reached for that it may not have.

The kernel refuses; this module only gives the refusal a name, so that evidence can say "it tried to open a connection
to example.org" instead of "PermissionError". An audit hook writes down what Python code tries, whether or not the
tool hides the error. It is a hint, not a wall: native code can avoid it. In a process without walls (the hub's fake
sandbox) the hook may refuse as well.
"""

from __future__ import annotations

import errno
import os
import sys

from sandbox.relay import GATE, REFUSED, UNKNOWN_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# What every tool may read: its interpreter, its package, system tables that libraries look up. It may write to WORK.
WORK, PACKAGE = "/w", "/p"
READABLE = (
    "/usr", "/lib", "/lib64", "/opt/toolhub", PACKAGE,
    "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/etc/ssl",
    "/proc/self", "/proc/cpuinfo", "/sys/devices/system/cpu",
    "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full",
)  # fmt: skip
WRITABLE = (WORK, "/dev/null")

_MAX_ATTEMPTS, _MAX_ATTEMPT_CHARS = 32, 200
_MAX_CHAIN = 16
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_ROUTE = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EAFNOSUPPORT}
_NO_ADDRESS = {"ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "EAI_NODATA", "EAI_NONAME"}  # as Node.js has them
_AF_UNIX = 1

_CHANGES = {
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.chown",
    "os.truncate",
}
_LOOKS = {"os.listdir", "os.scandir", "os.chdir"}
_NAMES = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
_ADDRESSES = {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"}
_SIGNALS = {"os.kill", "os.killpg"}
_POPEN = "subprocess.Popen"
_PROGRAMS = {_POPEN, "os.exec", "os.posix_spawn", "os.system", "os.spawn"}


class AccessAttempts:
    """The attempts of one call: ``fs:/etc/shadow``, ``net:example.org:443``, ``proc:/bin/sh``; each once, in order."""

    def __init__(
        self,
        *,
        readable: tuple[str, ...] = READABLE,
        writable: tuple[str, ...] = WRITABLE,
        runnable: tuple[str, ...] = (),
        proxy: tuple[str, int] | None = None,
        refuse: bool = False,
    ) -> None:
        self.attempts: list[str] = []
        self._readable = readable + writable + runnable
        self._writable = writable
        self._runnable = runnable
        self._proxy = proxy  # the one address that a tool with a way out connects to
        self._refuse = refuse

    def watch(self) -> None:
        """Begin to write down. There is no way to stop."""
        sys.addaudithook(self._hook)

    def blocked(self, error: BaseException | None) -> str:
        """The capability whose lack made this exception, looking through its causes and, where it is a group, its members.

        Empty if it was something else.
        """
        waiting = [error] if error is not None else []
        for _ in range(_MAX_CHAIN):
            if not waiting:
                break
            error = waiting.pop()
            if self._proxy and self._is_the_gates(error):
                return GATE
            if isinstance(error, OSError):
                capability = self._capability(error)
                if capability:
                    return capability
            before = error.__cause__ or error.__context__
            waiting += [before] if before is not None else []
            waiting += reversed(error.exceptions) if isinstance(error, BaseExceptionGroup) else []
        return ""

    def blocked_in_program(self, failures: list[tuple[str, str, str]]) -> str:
        """The same of a program that is not Python: what kind of thing it asked for, its name, and the kernel's word for the error."""
        for capability, name, word in failures[:_MAX_CHAIN]:
            number = getattr(errno, word, 0)
            match capability:
                case "fs":
                    outside = not self._is_under(name, self._readable)
                    refused = number in _REFUSED or (outside and number == errno.ENOENT)
                case "net":
                    refused = number in _REFUSED | _NO_ROUTE or word in _NO_ADDRESS
                case _:
                    refused = capability == "proc" and name not in self._runnable
            if refused:
                self._note(f"{capability}:{name}")
                return capability
        return ""

    def _is_the_gates(self, error: BaseException) -> bool:
        """Clients put the gate's answer into exceptions of their own. Whether it has said so, the gate knows."""
        text = str(error)
        return REFUSED in text or UNKNOWN_NAME in text

    def _capability(self, error: OSError) -> str:
        if type(error).__name__ == "gaierror" or error.errno in _NO_ROUTE:
            return "net"
        if any(each.__module__ == "ssl" for each in type(error).__mro__):
            return ""  # numbers of its own, which are not the kernel's
        path = error.filename
        if isinstance(path, (str, bytes)):
            path = os.fsdecode(path)
            for attempt in self.attempts:
                capability, _, name = attempt.partition(":")
                if capability != "fs" and name == path:
                    return capability
            outside = not self._is_under(path, self._readable)
            return "fs" if error.errno in _REFUSED or (outside and error.errno == errno.ENOENT) else ""
        if (
            error.errno in _REFUSED
        ):  # a call without a path: name what was tried last, or a thing that no profile grants
            return self.attempts[-1].partition(":")[0] if self.attempts else "system"
        return ""

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        look = _LOOKERS.get(event)
        if look is None:
            return
        attempt = look(self, arguments)
        if attempt is None:
            return
        attempt = self._note(attempt)
        if event == _POPEN and not self._runnable and _is_missing(program := _text(arguments[0])):
            # Nothing may be started here, so the kernel refuses before it has looked whether the program is there. Code that only asks
            # which programs a machine has is to hear what it hears on any machine.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
        if self._refuse:
            capability, _, name = attempt.partition(":")
            raise PermissionError(errno.EACCES, f"The profile does not hold the capability {capability!r}", name)

    def _note(self, attempt: str) -> str:
        attempt = attempt.encode(errors="backslashreplace").decode()[:_MAX_ATTEMPT_CHARS]  # a path may be no text
        if attempt not in self.attempts and len(self.attempts) < _MAX_ATTEMPTS:
            self.attempts.append(attempt)
        return attempt

    def _is_under(self, path: str, places: tuple[str, ...]) -> bool:
        path = os.path.normpath(os.path.join(os.getcwd(), path))
        return any(path == place or path.startswith(place + "/") for place in places)

    def _file(self, path: object, *, change: bool) -> str | None:
        if not isinstance(path, (str, bytes)) or not path:
            return None  # a descriptor that is already open
        name = os.fsdecode(path)
        return None if self._is_under(name, self._writable if change else self._readable) else f"fs:{name}"

    def _open(self, arguments: tuple[Any, ...]) -> str | None:
        path, _, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        return self._file(path, change=bool(writes))

    def _look(self, arguments: tuple[Any, ...]) -> str | None:
        return self._file(arguments[0], change=False)

    def _change(self, arguments: tuple[Any, ...]) -> str | None:
        return self._file(arguments[0], change=True)

    def _name(self, arguments: tuple[Any, ...]) -> str | None:
        if self._proxy and arguments[0] == self._proxy[0]:
            return None
        return "net:" + ":".join(_text(part) for part in arguments[:2] if part)

    def _address(self, arguments: tuple[Any, ...]) -> str | None:
        address = arguments[1]
        if isinstance(address, tuple):
            if self._proxy and address[:2] == self._proxy:
                return None
            return "net:" + ":".join(_text(part) for part in address[:2])
        return self._file(address, change=False) if address else None

    def _socket(self, arguments: tuple[Any, ...]) -> str | None:
        return None if self._proxy or arguments[1] in (_AF_UNIX, -1) else f"net:socket family {int(arguments[1])}"

    def _signal(self, arguments: tuple[Any, ...]) -> str | None:
        target = arguments[0]
        others = target != os.getpid() if self._refuse else target in (1, -1)  # behind walls, own children may be ended
        return f"proc:signal to {target}" if others else None

    def _program(self, arguments: tuple[Any, ...]) -> str | None:
        if _text(arguments[0]) in self._runnable:
            return None
        return "proc:" + _text(arguments[0])


def _is_missing(program: str) -> bool:
    """Whether no file of that name is where programs are looked for."""
    if os.sep in program:
        return not os.path.exists(program)
    return not any(os.path.exists(os.path.join(place, program)) for place in os.get_exec_path())


def _text(value: object) -> str:
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsdecode(value)
    return str(value) if isinstance(value, int) else "?"


_LOOKERS: dict[str, Callable[[AccessAttempts, tuple[Any, ...]], str | None]] = {
    "open": AccessAttempts._open,
    "socket.__new__": AccessAttempts._socket,
    **dict.fromkeys(_CHANGES, AccessAttempts._change),
    **dict.fromkeys(_LOOKS, AccessAttempts._look),
    **dict.fromkeys(_NAMES, AccessAttempts._name),
    **dict.fromkeys(_ADDRESSES, AccessAttempts._address),
    **dict.fromkeys(_PROGRAMS, AccessAttempts._program),
    **dict.fromkeys(_SIGNALS, AccessAttempts._signal),
}

"""Network: what of the world outside answers."""

from __future__ import annotations

import errno
import socket
import struct

Found = tuple["bool | None", str]

_ADDRESSES = (("192.0.2.1", 9), ("169.254.169.254", 80), ("2001:db8::1", 9))  # nobody, a cloud's own, nobody
_EMBEDDED = "127.0.0.11"  # where Docker puts a resolver of its own
_PORT = 53
_PATIENCE_S = 0.5
_QUESTION = struct.pack("!6H", 0x7062, 0x0100, 1, 0, 0, 0) + b"\7example\3org\0" + struct.pack("!2H", 1, 1)
_NOBODY_THERE = (errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EPERM, errno.EADDRNOTAVAIL)


def check_network() -> Found:
    with open("/proc/net/dev") as file:
        others = sorted(line.partition(":")[0].strip() for line in list(file)[2:])
    others = [name for name in others if name != "lo"]
    if others:
        return False, f"there is {', '.join(others)}"
    routes = [address for address, port in _ADDRESSES if _has_route(address, port)]
    return not routes, f"there is a route to {', '.join(routes)}" if routes else "lo, and no route beyond it"


def _has_route(address: str, port: int) -> bool:
    """A datagram socket is connected by looking for a route; nothing is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as end:
            end.connect((address, port))
    except OSError:
        return False
    return True


def check_resolver() -> Found:
    """Does a name server take a question? One that is silent is one that was reached."""
    taken = [server for server in _servers() if _takes_a_question(server)]
    return not taken, f"{', '.join(taken)} takes questions" if taken else "no name server takes a question"


def _servers() -> list[str]:
    found = [_EMBEDDED]
    try:
        with open("/etc/resolv.conf") as file:
            found += [line.split()[1] for line in file if line.startswith("nameserver ")]
    except OSError:
        pass
    return list(dict.fromkeys(found))


def _takes_a_question(server: str) -> bool:
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as end:
            end.settimeout(_PATIENCE_S)
            end.connect((server, _PORT))
            end.send(_QUESTION)
            end.recv(512)
    except TimeoutError:
        return True
    except OSError as error:
        return error.errno not in _NOBODY_THERE
    return True


def echoes_question(path: str, question: bytes) -> bool:
    """Does a unix socket at this path give the question back?"""
    try:
        with socket.socket(socket.AF_UNIX) as end:
            end.settimeout(_PATIENCE_S)
            end.connect(path)
            end.sendall(question)
            return end.recv(len(question)) == question
    except OSError:
        return False

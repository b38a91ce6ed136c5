from __future__ import annotations

import errno
import socket
import ssl
import urllib.error

import pytest

from sandbox.access_attempts import AccessAttempts


def hints_with(*attempts: str) -> AccessAttempts:
    hints = AccessAttempts(readable=("/usr", "/p"), writable=("/w",))
    hints.attempts.extend(attempts)
    return hints


def caused(error: Exception, by: BaseException) -> Exception:
    error.__context__ = by
    return error


@pytest.mark.parametrize(
    ("event", "arguments", "attempt"),
    [
        ("open", ("/etc/shadow", "r", 0), "fs:/etc/shadow"),
        ("open", (b"/etc/shadow", "r", 0), "fs:/etc/shadow"),
        ("open", ("/w/../etc/shadow", "r", 0), "fs:/w/../etc/shadow"),
        ("open", ("/usrlocal", "r", 0), "fs:/usrlocal"),
        ("open", ("/usr/lib/x", "w", 1), "fs:/usr/lib/x"),
        ("os.listdir", ("/root",), "fs:/root"),
        ("os.remove", ("/usr/bin/x", -1), "fs:/usr/bin/x"),
        ("socket.getaddrinfo", ("example.org", 443, 0, 0, 0), "net:example.org:443"),
        ("socket.connect", (None, ("192.0.2.1", 80)), "net:192.0.2.1:80"),
        ("socket.connect", (None, "/var/run/docker.sock"), "fs:/var/run/docker.sock"),
        ("subprocess.Popen", ("/bin/sh", [], None, None), "proc:/bin/sh"),
        ("os.system", (b"id",), "proc:id"),
        ("os.kill", (1, 9), "proc:signal to 1"),
    ],
)
def test_what_is_reached_for_is_named_once(event: str, arguments: tuple[object, ...], attempt: str) -> None:
    hints = hints_with()

    hints._hook(event, arguments)
    hints._hook(event, arguments)

    assert hints.attempts == [attempt]


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("open", ("/usr/lib/python3.11/json/__init__.py", "r", 0)),
        ("open", ("/w/x", "w", 1)),
        ("open", (3, "r", 0)),
        ("open", ("", "r", 0)),
        ("os.listdir", (None,)),
        ("socket.__new__", (None, socket.AF_UNIX, 1, 0)),
        ("import", ("json", None, None, None, None)),
        ("os.kill", (4711, 9)),
    ],
)
def test_what_a_tool_may_do_is_not_an_attempt(event: str, arguments: tuple[object, ...]) -> None:
    hints = hints_with()

    hints._hook(event, arguments)

    assert hints.attempts == []


@pytest.mark.parametrize("program", ["no-such-program", "/usr/bin/no-such-program"])
def test_code_that_asks_for_a_program_that_is_not_there_hears_so_and_the_wish_is_noted(program: str) -> None:
    hints = hints_with()

    with pytest.raises(FileNotFoundError) as found:
        hints._hook("subprocess.Popen", (program, [program, "-v"], None, None))

    assert hints.attempts == [f"proc:{program}"]
    assert hints.blocked(found.value) == "proc"


@pytest.mark.parametrize(("program", "runnable"), [("sh", ()), ("no-such-program", ("/usr/bin/git",))])
def test_what_is_there_is_refused_and_what_may_be_started_is_looked_for_by_the_kernel(
    program: str, runnable: tuple[str, ...]
) -> None:
    hints = AccessAttempts(runnable=runnable)

    hints._hook("subprocess.Popen", (program, [program], None, None))

    assert hints.attempts == [f"proc:{program}"]


def test_attempts_are_bounded() -> None:
    hints = hints_with()

    for number in range(1000):
        hints._hook("open", (f"/{number}" * 100, "r", 0))

    assert len(hints.attempts) == 32
    assert max(map(len, hints.attempts)) <= 200


@pytest.mark.parametrize(
    ("error", "attempts", "capability"),
    [
        (PermissionError(errno.EACCES, "x", "/etc/shadow"), (), "fs"),
        (FileNotFoundError(errno.ENOENT, "x", "/home/x"), (), "fs"),
        (FileNotFoundError(errno.ENOENT, "x", "/w/x"), (), ""),
        (FileNotFoundError(errno.ENOENT, "x", "/p/tool/x"), (), ""),
        (OSError(errno.EROFS, "x", "/usr/x"), (), "fs"),
        (PermissionError(errno.EPERM, "x", "ls"), ("proc:ls",), "proc"),
        (PermissionError(errno.EPERM, "x"), ("fs:/x", "net:example.org"), "net"),
        (PermissionError(errno.EPERM, "x"), (), "system"),
        (OSError(errno.ENETUNREACH, "x"), (), "net"),
        (socket.gaierror(-3, "x"), (), "net"),
        (caused(RuntimeError("no answer"), socket.gaierror(-3, "x")), (), "net"),
        (OSError(errno.ENOSPC, "x", "/w/x"), (), ""),
        (PermissionError("You may not see this order."), ("fs:/x",), ""),
        (ValueError("x"), ("fs:/x",), ""),
        (None, (), ""),
    ],
)
def test_an_error_is_traced_to_the_missing_capability(
    error: Exception | None, attempts: tuple[str, ...], capability: str
) -> None:
    assert hints_with(*attempts).blocked(error) == capability


@pytest.mark.parametrize(
    ("failure", "capability"),
    [
        (("proc", "/usr/bin/true", "ENOENT"), "proc"),
        (("proc", "/usr/bin/git", "ENOENT"), ""),  # its folder is not there, say
        (("proc", "/usr/bin/git", "EAGAIN"), ""),
        (("fs", "/etc/shadow", "EACCES"), "fs"),
    ],
)
def test_a_program_that_may_be_started_and_does_not_start_was_not_refused(
    failure: tuple[str, str, str], capability: str
) -> None:
    hints = AccessAttempts(readable=("/usr",), writable=("/w",), runnable=("/usr/bin/git",))

    assert hints.blocked_in_program([failure]) == capability
    assert bool(hints.attempts) == bool(capability)


def test_a_circle_of_causes_has_an_end() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__context__, second.__context__ = second, first

    assert hints_with().blocked(first) == ""


def with_a_way_out(*attempts: str) -> AccessAttempts:
    hints = AccessAttempts(readable=("/usr", "/c/egress"), writable=("/w",), proxy=("127.0.0.1", 3128))
    hints.attempts.extend(attempts)
    return hints


@pytest.mark.parametrize(
    "error",
    [
        urllib.error.URLError(OSError("Tunnel connection failed: 403 Refused by the sandbox (not_granted)")),
        caused(RuntimeError("The service does not answer."), OSError("403 Refused by the sandbox (not_tls)")),
        RuntimeError("403 Refused by the sandbox (private_address)"),
        ssl.SSLError(1, "[SSL: TLSV1_UNRECOGNIZED_NAME] tlsv1 unrecognized name (_ssl.c:1006)"),
    ],
)
def test_an_exception_with_the_gates_words_is_for_the_gate_to_judge(error: Exception) -> None:
    assert with_a_way_out().blocked(error) == "gate"
    assert hints_with().blocked(error) == ""


def test_other_exceptions_of_a_tool_with_a_way_out_are_its_own() -> None:
    assert with_a_way_out().blocked(ConnectionResetError(104, "Connection reset by peer")) == ""
    assert with_a_way_out().blocked(ValueError("refused")) == ""
    assert with_a_way_out().blocked(ssl.SSLCertVerificationError(1, "certificate verify failed")) == ""
    assert hints_with("net:example.org:443").blocked(ssl.SSLError(1, "[SSL] internal error")) == ""


def test_the_way_out_is_no_attempt_and_every_other_is() -> None:
    hints = with_a_way_out()

    hints._hook("socket.__new__", (None, socket.AF_INET, 1, 0))
    hints._hook("socket.getaddrinfo", ("127.0.0.1", 3128, 0, 0, 0))
    hints._hook("socket.connect", (None, ("127.0.0.1", 3128)))
    hints._hook("socket.connect", (None, "/c/egress"))
    assert hints.attempts == []

    hints._hook("socket.connect", (None, ("192.0.2.1", 443)))
    hints._hook("socket.getaddrinfo", ("example.org", 443, 0, 0, 0))
    assert hints.attempts == ["net:192.0.2.1:443", "net:example.org:443"]

"""From inside a real box: is the gate the only way out, and does what it says become the outcome?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import Profile, RunOutcome, RunStatus
from invocations.sandbox.egress import EgressGate
from invocations.sandbox.pool.slots import PoolCaps
from tests.egress.world import HOST, PUBLIC, Authority, Origin, origin, plain, tls
from tests.support.sandboxes import call_of, docker_sandbox, package_of
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.base import Sandbox

pytestmark = pytest.mark.attack
LEVELS = ("shared", "fresh", "single")

BY_A_CLIENT = """
import urllib.request
def run(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()
"""
BY_ITS_OWN_SOCKET = """
import socket, ssl
def run(host, port):
    way = socket.socket(socket.AF_UNIX)
    way.connect("/c/egress")
    way.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n".encode())
    way.recv(1000)
    with ssl.create_default_context().wrap_socket(way, server_hostname=host) as stream:
        stream.sendall(f"GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
        return stream.recv(1000).decode()
"""


# -- what is granted


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize("level", LEVELS)
def test_a_granted_host_is_reached_by_a_client_as_authors_write_them(
    level: str, run: Callable[..., RunOutcome], secure: Origin
) -> None:
    for _ in range(2):
        outcome = run(BY_A_CLIENT, {"net": [tls(HOST, secure.port)]}, level, url=f"https://{HOST}:{secure.port}/")

        assert (outcome.status, outcome.value) == (RunStatus.OK, "hello"), outcome
        (connection,) = outcome.connections
        assert (connection.host, connection.port, connection.allowed) == (HOST, secure.port, True)
        assert (connection.rule, connection.addresses) == (HOST, (PUBLIC,))
        assert connection.bytes_in > 100
        assert outcome.attempts == ()
        assert outcome.clean


@pytest.mark.req("TOOLS-16")
def test_a_granted_host_is_reached_by_plain_http(run: Callable[..., RunOutcome], open_server: Origin) -> None:
    capabilities = {"net": [plain(HOST, open_server.port, "GET")]}

    outcome = run(BY_A_CLIENT, capabilities, url=f"http://{HOST}:{open_server.port}/")

    assert (outcome.status, outcome.value) == (RunStatus.OK, "hello"), outcome


@pytest.mark.req("TOOLS-16")
def test_a_granted_host_is_reached_by_a_socket_of_the_tools_own(run: Callable[..., RunOutcome], secure: Origin) -> None:
    outcome = run(BY_ITS_OWN_SOCKET, {"net": [tls(HOST, secure.port)]}, host=HOST, port=secure.port)

    assert outcome.status is RunStatus.OK, outcome
    assert outcome.value.endswith("hello")
    assert outcome.attempts == ()


@pytest.mark.req("TOOLS-16")
def test_an_address_that_a_range_holds_is_reached(run: Callable[..., RunOutcome], open_server: Origin) -> None:
    capabilities = {"cidr": [{"cidr": f"{PUBLIC}/32", "ports": [open_server.port]}]}

    outcome = run(BY_A_CLIENT, capabilities, url=f"http://{PUBLIC}:{open_server.port}/")

    assert (outcome.status, outcome.value) == (RunStatus.OK, "hello"), outcome
    assert [connection.rule for connection in outcome.connections] == [f"{PUBLIC}/32"]


@pytest.mark.req("SVC-6")
def test_a_certificate_that_nobody_vouches_for_is_not_trusted(
    run: Callable[..., RunOutcome], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """TLS ends in the tool: the gate does not break it, so it is the tool's library that checks."""
    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    with origin(context=stranger.server_context(HOST)) as forged:
        outcome = run(BY_A_CLIENT, {"net": [tls(HOST, forged.port)]}, url=f"https://{HOST}:{forged.port}/")

    assert (outcome.status, outcome.error_type) == (RunStatus.RAISED, "URLError"), outcome
    assert "CERTIFICATE_VERIFY_FAILED" in outcome.error_message


WHOM_IT_TRUSTS = "import ssl\ndef run(): return len(ssl.create_default_context().get_ca_certs())"


@pytest.mark.req("SVC-6")
def test_the_public_roots_are_trusted_with_and_without_others(
    run: Callable[..., RunOutcome], tmp_path_factory: pytest.TempPathFactory
) -> None:
    beside_others = run(WHOM_IT_TRUSTS, {"net": [tls(HOST, 443)]})
    gate = EgressGate()
    plain_sandbox = docker_sandbox(gate=gate, caps=PoolCaps(ready=0))
    package = package_of(tmp_path_factory.mktemp("tool"), main=WHOM_IT_TRUSTS)
    profile = Profile(capabilities=Capabilities.from_json({"net": [tls(HOST, 443)]}))

    alone = plain_sandbox.run(profile, call_of(package))

    plain_sandbox.close()
    assert beside_others.value > 50, beside_others
    assert alone.value > 50, alone


# -- what is not


@pytest.mark.req("TOOLS-3", "TOOLS-16")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("scheme", ["https", "http"])
def test_a_tool_that_lets_a_refusal_out_was_blocked(level: str, scheme: str, run: Callable[..., RunOutcome]) -> None:
    outcome = run(BY_A_CLIENT, {"net": [tls(HOST, 443)]}, level, url=f"{scheme}://other.example.org/")

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, "net"), outcome
    assert outcome.attempts == (f"net:other.example.org:{443 if scheme == 'https' else 80}",)
    assert [(each.host, each.allowed, each.rule) for each in outcome.connections] == [("other.example.org", False, "")]


@pytest.mark.req("TOOLS-16")
def test_a_refusal_that_a_tool_hides_is_witnessed(run: Callable[..., RunOutcome]) -> None:
    hides = BY_A_CLIENT + "\ndef hide(url):\n    try: return run(url)\n    except OSError: return 'hidden'"
    hides = hides.replace("def run(", "def get(").replace("return run(", "return get(").replace("def hide(", "def run(")

    outcome = run(hides, {"net": [tls(HOST, 443)]}, url="https://other.example.org/")

    assert (outcome.status, outcome.value) == (RunStatus.OK, "hidden")
    assert outcome.attempts == ("net:other.example.org:443",)


@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    ("url", "blocked", "why"),
    [
        ("https://169.254.169.254/", "cidr", "not_granted"),
        ("http://169.254.169.254/latest/meta-data/", "cidr", "not_granted"),
        ("https://2130706433/", "net", "bad_target"),
        ("https://0x7f.1/", "net", "bad_target"),
        ("https://localhost./", "net", "bad_target"),
        ("https://inside.example.org/", "net", "private_address"),
    ],
)
def test_forbidden_targets_are_refused_from_inside(
    url: str, blocked: str, why: str, run: Callable[..., RunOutcome]
) -> None:
    outcome = run(BY_A_CLIENT, {"net": [tls("*", 443), plain("*", 80)]}, url=url)

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, blocked), outcome
    assert [(each.allowed, each.why) for each in outcome.connections] == [(False, why)]


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_redirect_to_metadata_is_blocked(run: Callable[..., RunOutcome]) -> None:
    with origin(
        answer=b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
    ) as moved:
        outcome = run(
            BY_A_CLIENT, {"net": [plain("*", moved.port), plain("*", 80)]}, url=f"http://{HOST}:{moved.port}/"
        )

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, "cidr"), outcome
    assert [each.allowed for each in outcome.connections] == [True, False]


@pytest.mark.req("TOOLS-16")
def test_tls_for_another_host_is_blocked(run: Callable[..., RunOutcome], secure: Origin) -> None:
    fronted = BY_ITS_OWN_SOCKET.replace("server_hostname=host", "server_hostname='front.example.org'")

    outcome = run(fronted, {"net": [tls(HOST, secure.port)]}, host=HOST, port=secure.port)

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, "net"), outcome
    assert [each.why for each in outcome.connections] == ["other_server_name"]
    assert secure.all() == [b""]


WITHOUT_THE_GATE = """
import socket
def tried(act):
    try: act(); return "reached"
    except OSError: return ""
def tcp(address, port, family=socket.AF_INET):
    with socket.socket(family) as end:
        end.settimeout(2); end.connect((address, port))
def udp(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.settimeout(0.2); end.sendto(b"x" * 30, (address, port)); end.recv(100)
def run(port):
    found = {f"tcp {address}": tried(lambda: tcp(address, port)) for address in
        ("127.0.0.1", "127.0.0.2", "172.17.0.1", "10.0.0.1", "169.254.169.254", "192.0.2.1", "0.0.0.0")}
    found["tcp ::1"] = tried(lambda: tcp("::1", port, socket.AF_INET6))
    for address in ("169.254.169.254", "8.8.8.8", "127.0.0.1", "127.0.0.11", "255.255.255.255"):
        found[f"dns {address}"] = tried(lambda: udp(address, 53))
    found["names"] = tried(lambda: socket.getaddrinfo("api.example.org", 443))
    found["raw"] = tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
    found["packets"] = tried(lambda: socket.socket(17, socket.SOCK_RAW, 0x300))
    found["netlink"] = tried(lambda: socket.socket(16, socket.SOCK_RAW, 0))
    found["vsock"] = tried(lambda: socket.socket(40, socket.SOCK_STREAM))
    return [name for name, what in found.items() if what]
"""


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize("level", LEVELS)
def test_there_is_no_other_way_out(level: str, run: Callable[..., RunOutcome], secure: Origin) -> None:
    outcome = run(WITHOUT_THE_GATE, {"net": [tls("*", secure.port)]}, level, port=secure.port)

    assert (outcome.status, outcome.value) == (RunStatus.OK, []), outcome
    assert secure.heard == []
    assert outcome.connections == ()


@pytest.mark.req("SVC-6", "TOOLS-3")
def test_a_tool_that_looks_a_name_up_by_itself_was_blocked(run: Callable[..., RunOutcome]) -> None:
    looks = "import socket\ndef run(): socket.create_connection(('api.example.org', 443))"

    outcome = run(looks, {"net": [tls(HOST, 443)]})

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, "net"), outcome
    assert outcome.attempts == ("net:api.example.org:443",)


LOOKS_AT_ITS_FOLDER = """
import os, socket
def seen(act):
    try: return act()
    except OSError: return "no"
def run():
    return {
        "there": [name for name in ("/c/egress", "/c/s") if seen(lambda: os.stat(name)) != "no"],
        "write": seen(lambda: os.open("/c/new", os.O_CREAT | os.O_WRONLY)),
        "remove": seen(lambda: os.unlink("/c/egress")),
        "rename": seen(lambda: os.rename("/c/egress", "/c/other")),
        "above": seen(lambda: os.listdir("/c/..")),
        "relay": seen(lambda: socket.create_connection(("127.0.0.1", 3128), 2) and "open"),
        "proxy": os.environ.get("HTTPS_PROXY", ""),
    }
"""


@pytest.mark.req("SVC-6")
def test_a_box_has_its_own_way_out_and_cannot_change_it(run: Callable[..., RunOutcome]) -> None:
    outcome = run(LOOKS_AT_ITS_FOLDER, {"net": [tls(HOST, 443)]})

    assert outcome.value == {
        "there": ["/c/egress"],
        "write": "no",
        "remove": "no",
        "rename": "no",
        "above": "no",
        "relay": "open",
        "proxy": "http://127.0.0.1:3128",
    }


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_box_that_may_reach_nothing_has_no_way_out(run: Callable[..., RunOutcome]) -> None:
    outcome = run(LOOKS_AT_ITS_FOLDER, {})

    assert (outcome.value["there"], outcome.value["relay"], outcome.value["proxy"]) == ([], "no", ""), outcome


# -- what cannot be held to


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    ("capabilities", "missing"),
    [
        ({"net": [tls(HOST, 443) | {"methods": ["GET"]}]}, f"net:https://{HOST}:443 GET"),
        ({"cidr": [{"cidr": "10.0.0.0/8", "ports": [53], "scheme": "udp"}]}, "cidr:udp://10.0.0.0/8:53"),
    ],
)
def test_what_the_gate_cannot_hold_a_tool_to_does_not_start(
    capabilities: dict[str, Any], missing: str, sandbox: Sandbox, run: Callable[..., RunOutcome]
) -> None:
    assert sandbox.missing(Profile(capabilities=Capabilities.from_json(capabilities))) == (missing,)

    outcome = run("def run(): return 1", capabilities)

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, missing)

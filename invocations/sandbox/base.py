"""Sandbox interface: what the hub asks of a sandbox, and what it may rely on.

A :class:`Sandbox` runs one call of one tool inside a :class:`Profile` and says what happened as an :class:`RunOutcome`. It
never raises for anything that a tool does, and never for a broken engine: both are outcomes. Everything the hub decides
on (``status``, ``duration_ms``, ``clean``, byte counts) is written by trusted code, never by the tool.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import rfc8785

from unitools.capabilities import DOMAINS, Capabilities
from unitools.npm_names import is_of_npm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocations.sandbox.stats import SandboxSnapshot

IMAGE_MISSING = "image_missing"  # the error_code of a START_FAILED for want of an image
OUTSIDE = ("fs", "net", "cidr", "proc", "browser")


class RunStatus(StrEnum):
    """How a run ended. ``OK``, ``RAISED`` and ``DOMAIN_ERROR`` are the tool's own doing; the rest is done to it."""

    OK = "ok"
    RAISED = "raised"  # an exception left the tool; error_type and error_message are set
    DOMAIN_ERROR = "domain_error"  # a unitools.runtime.DomainError; error_code, error_message, error_details are set
    BAD_RESULT = "bad_result"  # the tool returned something that is not strict JSON
    LOAD_TIMED_OUT = "load_timed_out"  # its code was not imported in time; it was not called
    TIMED_OUT = "timed_out"  # wall clock, processor time or patience over, killed
    OUT_OF_MEMORY = "out_of_memory"
    RESULT_TOO_LARGE = "result_too_large"
    LOG_FLOOD = "log_flood"
    EXITED = "exited"  # the process ended without a result (exit, signal, crash)
    CAPABILITY_BLOCKED = "capability_blocked"  # it tried what the profile does not hold, and that ended it
    START_FAILED = "start_failed"  # no box could be started: engine down, image missing; nothing ran
    LOST = "lost"  # contact to the box was lost after the tool may have started
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard limits of one run. Bytes and milliseconds. ``idle_ms``: the longest silence; 0 sets no limit to it."""

    wall_ms: int = 10_000
    idle_ms: int = 0
    cpu_s: int = 10
    memory_bytes: int = 256 * 1024 * 1024
    processes: int = 64
    tmp_bytes: int = 32 * 1024 * 1024
    result_bytes: int = 256 * 1024
    result_depth: int = 32
    log_bytes: int = 64 * 1024
    log_flood_bytes: int = 8 * 1024 * 1024
    files: int = 0  # that a run may leave behind in the tenant's tree
    file_bytes: int = 16 * 1024 * 1024  # all of them together
    artifacts: int = 0  # that a run may leave for its caller
    artifact_bytes: int = 0  # all of them together


@dataclass(frozen=True, slots=True)
class Profile:
    """What one run may reach: the normal form of Grant ∩ Manifest ∩ Policy, and the limits of its box.

    The ceilings of the algebra have become ``limits``, so ``capabilities`` has none. What is empty is denied.
    ``isolation`` is one of ``access.policies.clauses.LEVELS``, the weakest that is enough: a sandbox may give a stronger
    one. ``untrusted`` asks for the runtime set aside for code that nobody here vouches for, and for every wall.
    """

    limits: Limits = field(default_factory=Limits)
    capabilities: Capabilities = field(default_factory=Capabilities)
    isolation: str = "fresh"
    untrusted: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "capabilities", self.capabilities.replaced(ceilings={}))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Profile:
        """Read back what :meth:`to_json` wrote."""
        parts = {name: data[name] for name in DOMAINS}
        return cls(
            limits=Limits(**data["limits"]),
            capabilities=Capabilities.from_json(parts),
            isolation=data["isolation"],
            untrusted=data["untrusted"],
        )

    @property
    def outside(self) -> tuple[str, ...]:
        """The kinds of things outside its own code that the run may reach: the sandbox must let them through."""
        return tuple(name for name in OUTSIDE if getattr(self.capabilities, name))

    def to_json(self) -> dict[str, Any]:
        written = self.capabilities.to_json()
        return (
            {"limits": asdict(self.limits)}
            | {name: written[name] for name in DOMAINS}
            | {"isolation": self.isolation, "untrusted": self.untrusted}
        )

    def digest(self) -> str:
        """``sha256:…`` of the canonical JSON (RFC 8785): the ``profile_hash`` of evidence."""
        return "sha256:" + hashlib.sha256(rfc8785.dumps(self.to_json())).hexdigest()


@dataclass(frozen=True, slots=True)
class BoxKey:
    """For whom and for what a box may be used again: never for another tenant, never for other code.

    ``code`` is the digest of the tool's package, ``dependencies`` that of its locked dependencies (empty: none),
    ``principal`` the agent when the tool must not serve two of them from one box.
    """

    tenant: str
    code: str
    dependencies: str = ""
    principal: str = ""


@dataclass(frozen=True, slots=True)
class TenantFile:
    """A file of the tenant's tree, at its path in the box: below ``/data``."""

    path: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that a call sends to a service. ``id``: by which its arguments name it; ``fingerprint``: the keyed hash of its content,
    which is for evidence and no box."""

    id: str
    name: str
    media_type: str
    content: bytes = field(repr=False)
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class LeftArtifact:
    """Something that a run leaves for its caller beside the result; ``claim``: of which media type the tool says it is."""

    name: str
    claim: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class RunEvent:
    """What a tool said while it ran: ``stdout``, ``stderr``, or ``progress`` (its JSON object, shape-checked)."""

    stream: str
    text: str = ""
    progress: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceRecord:
    """What the gate saw of one request of the service way. ``asks``: the method of MCP, of a server of others.

    ``path``: the template, below the server's own. ``status``: 0 where none came. ``left``: whether a byte of the request may have
    left; before that nobody has been asked for anything. ``complete``: the whole of the answer came. ``credentials``: the names of
    the secrets that the gate adds. ``counts``: whether it is what the call is for; what only comes before it, or after, changes
    nothing. ``refused_token``: whether a 401 says that the token is not good (RFC 6750, 3.1), and not only that one is wanted.
    """

    method: str
    path: str
    status: int = 0
    left: bool = False
    complete: bool = False
    credentials: tuple[str, ...] = ()
    asks: str = ""
    counts: bool = True
    refused_token: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionRecord:
    """One attempt to reach another host, written by the gate.

    ``allowed`` is what the gate said; ``why`` is one of :class:`invocations.sandbox.egress.denial_reasons.DenialReason` where it came
    to nothing.
    ``host`` is the tool's own word; ``rule`` is the host, pattern or range as the capabilities have it, empty when none names it.
    """

    host: str
    port: int
    allowed: bool
    why: str = ""
    rule: str = ""
    addresses: tuple[str, ...] = ()
    bytes_out: int = 0
    bytes_in: int = 0
    ms: float = 0.0
    service: ServiceRecord | None = None  # of the service way


@dataclass(frozen=True, slots=True)
class SandboxCall:
    """One run to be done.

    ``package`` is a zip of the tool's package (its top folder is the first segment of ``module``); ``arguments`` is the
    JSON text of the keyword arguments, already validated; ``context`` is the JSON form of ``unitools.runtime.Call``;
    ``name`` identifies the run (invocation id and attempt) and is unique; ``config`` and ``secrets`` are what the tenant
    set for the tool, and are given to the tool's process only. Without a ``key`` no box is used twice. ``dependencies`` is
    the folder of built wheels that belongs to ``key.dependencies``. ``program`` is the command line of a tool that is no
    Python function, in ``image`` (empty: the usual one). ``server``: how a server of the dependencies is started
    that answers the call in place of ``module``, with the ``package`` that brings it, and belongs to ``key.code``; ``asks``: the
    ``tool`` by the server's name and whether its result is ``structured``; empty: for its list. ``operation``: the request to a
    service that answers the call in place of ``module``, by the service way; ``remote``: the server of others that is somewhere else,
    with the ``revision`` that is spoken, by the same way. Of both ``secrets`` are given to the gate only. ``sent_files``: those that
    the request to a service carries.
    ``hidden``: by the name of a secret, the texts that give it away. ``trusted``: an operator vouches for this code, which has no
    effect.
    ``replay``: the tool sees the time and the chance that ``context`` names as its own (sandbox.clock).
    """

    name: str
    package: bytes
    module: str
    entry: str
    arguments: bytes
    context: dict[str, Any]
    labels: dict[str, str] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    key: BoxKey | None = None
    dependencies: Path | None = None
    files: tuple[TenantFile, ...] = ()
    sent_files: tuple[SentFile, ...] = ()
    program: tuple[str, ...] = ()
    server: dict[str, Any] | None = None
    asks: dict[str, Any] = field(default_factory=dict)
    operation: dict[str, Any] | None = None
    remote: dict[str, Any] | None = None
    hidden: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    image: str = ""
    trusted: bool = False
    replay: bool = False

    @property
    def is_on_node(self) -> bool:
        """Whether a server of a package of npm answers."""
        return self.server is not None and is_of_npm(self.server["package"])

    @property
    def is_by_gate(self) -> bool:
        """Whether the gate asks a service or a server for what the tool is, and no code of an author's runs."""
        return self.operation is not None or self.remote is not None


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What happened. ``steps`` are (name, begin_ms, end_ms) relative to the call of :meth:`Sandbox.run`."""

    status: RunStatus
    value: Any = None
    report: dict[str, Any] = field(default_factory=dict)  # unitools.runtime.Report as JSON, shape-checked
    error_code: str = ""
    error_type: str = ""
    error_message: str = ""
    error_details: dict[str, Any] = field(default_factory=dict)
    blocked: str = ""  # the missing capability, for CAPABILITY_BLOCKED; "system" for what no profile can hold
    attempts: tuple[
        str, ...
    ] = ()  # what it reached for without having it, for example "net:example.org:443"; the tool's word
    stdout: str = ""
    stderr: str = ""
    result_bytes: int = 0
    duration_ms: float = 0.0
    cpu_ms: float | None = None
    cpu_exact: bool = True  # of all its processes; else of the first, and of those that it waited for
    max_rss_bytes: int | None = None  # of its first process, and of those that it waited for: the kernel's mark of the
    # whole box counts from its start, and cannot be set back from inside
    image: str = ""  # content digest of the image
    box: str = ""  # id of the container
    waited_ms: int | None = None  # for how long what answered it had been started before it came; None: with it
    clean: bool = True  # nothing of the run was left behind when it ended by itself
    level: str = ""  # the isolation that it had, one of LEVELS, or "direct"
    files: tuple[TenantFile, ...] = ()  # what it left below the paths that it may write to
    gone: tuple[str, ...] = ()  # files that it got and that are not there any more
    skipped: tuple[tuple[str, str], ...] = ()  # what was left there and not taken, with the reason
    artifacts: tuple[LeftArtifact, ...] = ()
    connections: tuple[ConnectionRecord, ...] = ()
    connections_known: bool = True  # False when the gate has not answered: then there may have been some
    steps: tuple[tuple[str, float, float], ...] = ()

    @property
    def nothing_ran(self) -> bool:
        """It is certain that the tool did not begin."""
        unless_in_a_box = (RunStatus.CANCELLED, RunStatus.LOAD_TIMED_OUT)
        return self.status is RunStatus.START_FAILED or (self.status in unless_in_a_box and not self.box)


class SandboxUnavailable(Exception):
    """The sandbox cannot run anything now. The message says why and what to do about it."""


class Sandbox(Protocol):
    """A place to run tools. Implementations pass ``tests/contracts/sandbox_contract.py``."""

    def missing(self, profile: Profile, *, by_gate: bool = False) -> tuple[str, ...]:
        """The capabilities in ``profile`` that this sandbox cannot provide, for example ``("net", "browser")``.

        ``by_gate``: the run has the service way, by which single methods of https can be held to.
        """

    def run(
        self, profile: Profile, call: SandboxCall, on_event: Callable[[RunEvent], None] | None = None
    ) -> RunOutcome:
        """Run one call to its end. Blocks at most ``limits.wall_ms`` plus start-up, loading and a small grace.

        ``on_event`` is told, from this thread or another, what the tool says meanwhile; it must not block.
        """

    @property
    def closing(self) -> bool:
        """Whether it begins no more runs."""

    def kill(self, name: str) -> None:
        """End the run of this name that this process started; no error if there is none."""

    def snapshot(self) -> SandboxSnapshot | None:
        """What the boxes of this process look like; None when it has none to show."""

    def check(self) -> str:
        """One line for ``doctor``: what answers; raises ``SandboxUnavailable`` with a cure if nothing does."""

    def close(self) -> None:
        """End all boxes this process started, and start no more."""

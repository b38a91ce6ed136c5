"""Isolation: what one call may reach while it runs, and what not.

The walls depend on what the box was loaded with and on nothing of a call, so they are raised before the call comes, and what
the rooms of a box have in common is made ready once. One wall closes later: where a call brings files, each may be used as
its rule says, and they are laid out first.
"""

from __future__ import annotations

import os

from sandbox import browser, confinement, files, namespaces, relay, siblings, syscalls
from sandbox.access_attempts import READABLE, WORK, WRITABLE, AccessAttempts
from sandbox.meter import ProcessorMeter
from sandbox.package import DEPENDENCIES
from sandbox.programs import NODE, Programs
from unitools.npm_names import is_of_npm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sandbox.package import HeldModules

REUSED = ("shared", "fresh")  # levels
_NICE = 10  # inside the container the supervisor gets the processor first
_SECOND_WALL = 2  # times the limit: who counts for the box comes first, and the kernel counts in ticks, which run ahead
_SLACK = 2  # a tree of files holds what a call brings, and what it leaves
_PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
_ROOTS = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")


class BoxIsolation:
    """What the rooms of a box have in common, for the process that all tools' processes are forked from.

    ``loaded`` is the head of the frame that loaded the box, ``others`` are the processes that no tool may touch.
    """

    def __init__(self, loaded: dict[str, Any], others: list[int]) -> None:
        level, self.limits, self.rules, self.net = loaded["level"], loaded["limits"], loaded["fs"], loaded["net"]
        self.fresh, self.reused, self.browser = level == "fresh", level in REUSED, loaded["browser"]
        if self.browser and self.reused:
            raise ValueError(f"A box with a browser is used once, so it cannot have the level {level}.")
        self.server = loaded[
            "server"
        ]  # how the server of others is started that answers the calls; None: there is none
        self.is_on_node = self.server is not None and is_of_npm(self.server["package"])
        # Such a server is started before the call; ``settings`` are what the tenant has set, for it.
        self.begins_server, self.settings = self.is_on_node and loaded["ahead"], loaded["settings"]
        allowed = [*loaded["proc"], *(browser.RUNNABLE if self.browser else ()), *((NODE,) if self.is_on_node else ())]
        self.programs = Programs(allowed, loaded["program"], loaded["files"])
        self.operation = loaded["operation"]  # of a service that answers the calls, through the gate; None: none does
        self.remote = loaded[
            "remote"
        ]  # the server of others, somewhere else, that answers through the gate; None: none does
        self.begins_ahead = self._may_begin_ahead(loaded["ahead"])
        self.listing = b""  # what was reviewed of the server's tools
        self.modules: HeldModules | None = None  # of the package; None: its code is not held
        self.user = os.getuid(), os.getgid()
        self.others = 0 if self.fresh else len(others)
        self.limits_of_one = self.limits  # of processes; the whole box's are the supervisor's, where it can count
        if ProcessorMeter().exact:
            self.limits_of_one = self.limits | {"cpu_s": self.limits["cpu_s"] * _SECOND_WALL}
        self.import_s = -(-loaded["import_ms"] // 1000)  # beside it
        self.has_landlock = confinement.landlock_version() > 0
        self.readable: tuple[str, ...] = (*READABLE, DEPENDENCIES, *((relay.CA_FILE,) if self.net else ()))
        self.writable: tuple[str, ...] = WRITABLE if self.limits["tmp_bytes"] else ("/dev/null",)
        if self.browser:
            self.readable, self.writable = self.readable + browser.READABLE, self.writable + browser.WRITABLE
        self.untouchable = () if self.fresh else tuple(others)
        self.keep_modes = level == "shared" or not self.has_landlock
        self.filter = self._filter(syscalls.NEEDED_FOR_NAMESPACES if self.fresh else ())
        self.last_filter = (
            syscalls.build_refusal_filter(os.uname().machine, syscalls.NEEDED_FOR_NAMESPACES) if self.fresh else b""
        )
        self.ground = confinement.LandlockRuleset() if self.has_landlock else None
        own = {"/proc/self", *namespaces.REPLACED} if self.fresh else {"/proc/self"}  # another thing for each call
        self.own_readable, self.own_writable = own.intersection(self.readable), own.intersection(self.writable)
        self.resource_limits = self._resource_limits()
        self.hints = self._hints()

    def _may_begin_ahead(self, ahead: bool) -> bool:
        """Whether nothing of a call decides how its server begins: neither what is set for it, nor its files, nor where it may go,
        since what it reaches for before the call would be nobody's."""
        if self.server is None or not (self.reused and ahead) or self.rules or self.net:
            return False
        return all("value" in each for each in self.server.get("environment", ()))

    def _filter(self, spared: tuple[str, ...]) -> bytes:
        return syscalls.build_filter(
            os.uname().machine,
            net=self.net,
            proc=bool(self.programs.runnable),
            keep_modes=self.keep_modes,
            memory_files=self.browser or self.programs.replaces_tool or not self.programs.runnable,
            untouchable=self.untouchable,
            spared=spared,
            cloned=siblings.FLAGS | namespaces.NAMESPACES if spared else 0,
        )

    def make_ready(self) -> None:
        """Raise in this process what its children inherit, and need not do without first."""
        os.environ.update(PATH="/usr/bin", HOME=WORK, TMPDIR=WORK, LANG="C.UTF-8")
        if self.net:
            roots = relay.CA_FILE if os.path.exists(relay.CA_FILE) else relay.PUBLIC_CA_FILE
            os.environ.update(dict.fromkeys(_PROXIES, relay.PROXY) | dict.fromkeys(_ROOTS, roots))
        if self.ground is not None:
            self.ground.allow_reading(*self.own_readable.symmetric_difference(self.readable))
            self.ground.allow_writing(*self.own_writable.symmetric_difference(self.writable))
            self.ground.allow_running(*self.programs.runnable)
            if self.net:
                self.ground.allow_connecting(relay.PORT)
        if self.browser:
            browser.prepare_shared_memory()
        os.nice(_NICE)
        confinement.forbid_new_privileges()
        confinement.filter_system_calls(self.filter)

    def _resource_limits(self) -> list[tuple[int, tuple[int, int]]]:
        limits = self.limits_of_one | {"cpu_s": self.limits_of_one["cpu_s"] + self.import_s}
        if self.rules:
            limits = limits | {"tmp_bytes": max(limits["tmp_bytes"], limits["file_bytes"])}  # here: of one file
        more = {"descriptors": browser.DESCRIPTORS} if self.browser else {}
        return confinement.resource_limits(limits, others=self.others, first=self.fresh, **more)

    def begin_run(self) -> None:
        """In the tool's process, when its modules are imported: what that took is not its own time."""
        confinement.limit_processor(self.limits_of_one["cpu_s"], first=self.fresh)

    def _hints(self) -> AccessAttempts:
        """Who notes what the tool reaches for and may not have."""
        paths = tuple(rule["path"] for rule in self.rules)
        changes = tuple(rule["path"] for rule in self.rules if {"write", "create", "delete"} & set(rule["actions"]))
        return AccessAttempts(
            readable=(*self.readable, relay.CA_FILE, relay.SOCKET, *paths),
            writable=(*WRITABLE, *self.writable, *changes),
            runnable=self.programs.runnable,
            proxy=("127.0.0.1", relay.PORT) if self.net else None,
        )


class CallIsolation:
    """The room of one call."""

    def __init__(self, rooms: BoxIsolation) -> None:
        self._rooms = rooms

    def enter(self) -> int:
        """Raise the walls, but for :meth:`close`. Returns a descriptor of the folder for files, or -1."""
        rooms = self._rooms
        os.setsid()
        confinement.set_dumpable(True)  # else what is next, and the tool's own /proc/self, belong to root
        if rooms.fresh:
            namespaces.map_user(*rooms.user)
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, b"1000")  # when memory is short, the tool goes first
        os.close(score)
        if rooms.fresh:
            limits = rooms.limits
            namespaces.mount_folders(limits["tmp_bytes"], limits["file_bytes"] * _SLACK if rooms.rules else 0)
            namespaces.drop_capabilities()
        os.chdir(WORK)
        data = -1
        if rooms.rules:
            data = os.open(files.DATA, os.O_RDONLY | os.O_DIRECTORY)
            files.make_folders(data, rooms.rules)
        else:
            self._close()
        confinement.limit_resources(rooms.resource_limits)
        if rooms.last_filter:
            confinement.filter_system_calls(rooms.last_filter)
        return data

    def close(self) -> None:
        """After the call's files are laid out, before anything of the tool is loaded."""
        if self._rooms.rules:
            self._close()

    def _close(self) -> None:
        ground = self._rooms.ground
        if ground is None:
            return
        ground.begin()
        ground.allow_reading(*self._rooms.own_readable)
        ground.allow_writing(*self._rooms.own_writable)
        for rule in self._rooms.rules:
            if os.path.exists(rule["path"]):
                ground.allow_actions(rule["path"], rule["actions"])
            elif "create" in rule["actions"]:  # the file is not there yet; what else is made beside it is not taken
                ground.allow_actions(os.path.dirname(rule["path"]), ("create",))
        ground.confine()

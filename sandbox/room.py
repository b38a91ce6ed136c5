"""In what room does one call run: what may it reach, and what not?

The walls depend on what the box was loaded with and on nothing of a call, so they are raised before the call comes. One
closes later: where a call brings files, each may be used as its rule says, and they are laid out first.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from sandbox import browsing, files, namespaces, relay, walls
from sandbox.hints import PACKAGE, READABLE, WORK, WRITABLE, Hints
from sandbox.package import DEPENDENCIES

_NICE = 10  # inside the container the supervisor gets the processor first
_SLACK = 2  # a tree of files holds what a call brings, and what it leaves


class Room:
    """The room of one call. ``loaded`` is the head of the frame that loaded the box, and what the zygote added."""

    def __init__(self, loaded: dict[str, Any]) -> None:
        self._limits, self._rules, self._net = loaded["limits"], loaded["fs"], loaded["net"]
        self._fresh, self._browser = loaded["level"] == "fresh", loaded["browser"]
        self._filter, self._others, self._programs = loaded["filter"], loaded["others"], loaded["programs"]
        self._scratch = self._limits["tmp_bytes"] > 0

    def enter(self) -> int:
        """Raise the walls, but for :meth:`close`. Returns a descriptor of the folder for files, or -1."""
        os.setsid()
        walls.set_dumpable(True)  # else the next line, and the tool's own /proc/self, belong to root
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # when memory is short, the tool goes first
        os.nice(_NICE)
        if self._fresh:
            folders = {WORK: self._limits["tmp_bytes"]}
            if self._rules:
                folders[files.DATA] = self._limits["file_bytes"] * _SLACK
            namespaces.furnish(folders)
            namespaces.drop_capabilities()
        else:
            os.chmod(WORK, 0o700 if self._scratch else 0o500)
        if self._browser:
            browsing.make_room()
        os.chdir(WORK)
        data = self._open_data()
        self._set_environment()
        limits = dict(self._limits)
        if self._rules:
            limits["tmp_bytes"] = max(limits["tmp_bytes"], limits["file_bytes"])  # here: of one file
        more = {"descriptors": browsing.DESCRIPTORS} if self._browser else {}
        walls.limit_resources(limits, others=self._others, first=self._fresh, **more)
        walls.forbid_new_privileges()
        if not self._rules:
            self._close()
        walls.filter_system_calls(self._filter)
        return data

    def _open_data(self) -> int:
        if not self._rules:
            return -1
        data = os.open(files.DATA, os.O_RDONLY | os.O_DIRECTORY)
        files.make_folders(data, self._rules)
        return data

    def _set_environment(self) -> None:
        os.environ.update(PATH="/usr/bin", HOME=WORK, TMPDIR=WORK, LANG="C.UTF-8")
        if self._net:
            for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
                os.environ[name] = relay.PROXY
            roots = relay.CA_FILE if os.path.exists(relay.CA_FILE) else relay.PUBLIC_CA_FILE
            for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"):
                os.environ[name] = roots
        if not self._programs.replaces_tool:
            sys.path.insert(sys.path.index(DEPENDENCIES), PACKAGE)

    def close(self) -> None:
        """After the call's files are laid out, before anything of the tool is loaded."""
        if self._rules:
            self._close()

    def _close(self) -> None:
        if not walls.landlock_version():
            return
        ground = walls.Ground()
        ground.allow_reading(*READABLE, DEPENDENCIES)
        ground.allow_writing(*(WRITABLE if self._scratch else ("/dev/null",)))
        ground.allow_running(*self._programs.runnable)
        for rule in self._rules:
            if os.path.exists(rule["path"]):
                ground.allow_actions(rule["path"], rule["actions"])
            elif "create" in rule["actions"]:  # the file is not there yet; what else is made beside it is not taken
                ground.allow_actions(os.path.dirname(rule["path"]), ("create",))
        if self._browser:
            ground.allow_reading(*browsing.READABLE)
            ground.allow_writing(*browsing.WRITABLE)
        if self._net:
            ground.allow_reading(relay.CA_FILE)
            ground.allow_connecting(relay.PORT)
        ground.confine()

    def hints(self) -> Hints:
        """Who notes what the tool reaches for and may not have."""
        paths = tuple(rule["path"] for rule in self._rules)
        changes = tuple(rule["path"] for rule in self._rules if {"write", "create", "delete"} & set(rule["actions"]))
        if self._browser:
            paths, changes = (*paths, *browsing.READABLE), (*changes, *browsing.WRITABLE)
        return Hints(
            readable=(*READABLE, DEPENDENCIES, relay.CA_FILE, relay.SOCKET, *paths),
            writable=(*WRITABLE, *changes),
            runnable=self._programs.runnable,
            proxy=("127.0.0.1", relay.PORT) if self._net else None,
        )

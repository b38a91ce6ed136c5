"""MCP server: how a server of a package of others answers one call.

Each call has a server of its own. Its modules are imported before the call, in the process that all calls of the box are forked
from, as far as nothing of a call decides what they do then. The call's process forks once more: here is the one that asks, there
the server, which finds its pipes where a program finds its standard input and output. Nothing of it outlives the call. Where nothing
of a call decides how it begins, the server of the next call is there before that comes (:mod:`sandbox.next_server`).
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress

from sandbox import clock
from sandbox.call import PROGRESS_FD, REPORT_FD
from sandbox.mcp_results import ask_tool, read_list, read_result
from sandbox.package import DEPENDENCIES
from sandbox.server_environment import read_environment
from sandbox.server_imports import MAIN, ServerImports
from sandbox.server_process import ServerProcess
from unitools import runtime
from unitools.mcp_conversation import PROGRESS_TOKEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

_LIKE_EVERYWHERE = frozenset({"anyio", "mcp", "pydantic"} | sys.stdlib_module_names)


class McpServer:
    """``start`` is the manifest's ``implementation.server``: its script or module, arguments, environment by names; and the
    ``package`` that brings it. ``LookupError`` when that one does not: another package may have a program of the same name."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._arguments: list[str] = list(start.get("arguments", ()))
        self._environment: list[dict[str, str]] = list(start.get("environment", ()))
        self._script: str = start.get("script", "")
        self.module, self._function = start.get("module", ""), ""
        if self._script:
            self.module, self._function = find_script(self._script, start["package"])
        else:
            check_module(self.module, start["package"])

    def import_ahead(self) -> None:
        """In the process that calls are forked from. Modules may look at their environment when they are imported, the server's and
        those of others: where a call decides what is in it, only those are that begin alike everywhere."""
        sys.argv = [self._script or self.module, *self._arguments]
        imports = ServerImports(self.module)
        if self._is_run_itself():
            imports.own.pop(self.module, None)
        os.environ.update((each["name"], each["value"]) for each in self._environment if "value" in each)
        is_known = all("value" in each for each in self._environment)
        imports.import_foreign(None if is_known else _LIKE_EVERYWHERE)
        if is_known:
            imports.import_own()

    def find_entry(self, head: dict[str, Any], begun: ServerProcess | None = None) -> Callable[..., Any]:
        """What answers the call, once all is imported that the server begins with. ``begun``: the server, where it is there."""
        asks = head["asks"]
        if begun is None:
            self.make_ready()
        if not asks:
            return self.list_tools
        return lambda **arguments: self.call_tool(asks, arguments, begun)

    def make_ready(self) -> None:
        """Import what the server begins with, in the process of its call."""
        sys.argv = [self._script or self.module, *self._arguments]
        values = read_environment(self._environment, lambda name: runtime.config()[name], runtime.secret)
        os.environ.update(values)
        if not self._is_run_itself():
            importlib.import_module(self.module)

    def begin(self, seed: int, *, closes: Sequence[int] = ()) -> ServerProcess:
        """Start it. ``closes``: descriptors that are not for it."""

        def serve() -> NoReturn:
            clock.seed_chance(seed)  # the fork has made chance of it
            self._serve()

        return ServerProcess(serve, closes=(REPORT_FD, PROGRESS_FD, *closes))

    def call_tool(self, asks: dict[str, Any], arguments: dict[str, Any], begun: ServerProcess | None = None) -> Any:
        """``asks``: the ``tool`` by its own name, and whether its result is ``structured``."""
        params = {"name": asks["tool"], "arguments": arguments, "_meta": {"progressToken": PROGRESS_TOKEN}}
        with begun or self.begin(runtime.current_call().seed) as server:
            server.answer_to_call()
            if begun is None:
                server.talk.initialize()
            result = ask_tool(server.talk, params)
            if begun is not None:  # it has no file and no connection that it could leave half written
                server.kill()
        return read_result(result, structured=asks["structured"])

    def list_tools(self) -> dict[str, Any]:
        """``{protocol, tools}``: the revision that the server speaks, and the whole of its list."""
        with self.begin(runtime.current_call().seed) as server:
            server.answer_to_call()
            return read_list(server.talk, server.talk.initialize())

    def _is_run_itself(self) -> bool:
        """As ``python -m`` runs a module, but for a package's ``__main__``. Were it imported before, its code would run twice."""
        return not self._function and not os.path.isdir(f"{DEPENDENCIES}/{self.module.replace('.', '/')}")

    def _serve(self) -> NoReturn:
        """In a process of its own, whose standard input and output are those of a server."""
        code = 1
        try:
            sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8", closefd=False)  # type: ignore[misc]
            sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", closefd=False)  # type: ignore[misc]
            code = self._run()
            with suppress(ValueError):  # the server has closed it
                sys.stdout.flush()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            if isinstance(ended.code, str):
                sys.stderr.write(f"{ended.code}\n")
        except BaseException as raised:
            sys.__excepthook__(type(raised), raised, raised.__traceback__)
        finally:
            with suppress(BaseException):
                sys.stderr.flush()
            os._exit(code & 0xFF)

    def _run(self) -> int:
        if not self._function:
            runpy = importlib.import_module("runpy")
            runpy.run_module(self.module, run_name=MAIN, alter_sys=True)
            return 0
        target: Any = importlib.import_module(self.module)
        for word in self._function.split("."):
            target = getattr(target, word)
        returned = target()
        if hasattr(type(returned), "__await__"):
            returned = importlib.import_module("asyncio").run(_wait_for(returned))
        return returned if isinstance(returned, int) else 0


def find_script(name: str, package: str, folder: str = DEPENDENCIES) -> tuple[str, str]:
    """Module and function of a console script of this package. ``LookupError`` when it has none of that name."""
    if found := _console_script(_read_about(package, "entry_points.txt", folder), name):
        return found
    raise LookupError(f"The package {package} brings no program {name!r}.")


def check_module(name: str, package: str, folder: str = DEPENDENCIES) -> None:
    """``LookupError`` when the module is not one of this package's files."""
    place = name.replace(".", "/")
    files = {f"{place}.py", f"{place}/__init__.py", f"{place}/{MAIN}.py"}
    recorded = {line.partition(",")[0] for line in _read_about(package, "RECORD", folder).splitlines()}
    extensions = {each for each in recorded if each.startswith(f"{place}.") and each.endswith(".so")}
    if name.partition(".")[0] in sys.stdlib_module_names or not (extensions or files & recorded):
        raise LookupError(f"The package {package} brings no module {name!r}.")


def _read_about(package: str, what: str, folder: str) -> str:
    """A file of what an installed package says of itself. Where two say that they are this package, neither is believed."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [
        each for each in names if each.endswith(".dist-info") and _plain(each.partition("-")[0]) == _plain(package)
    ]
    if len(found) != 1:
        raise LookupError(f"{len(found)} of the packages here are {package}.")
    with suppress(OSError, ValueError), open(f"{folder}/{found[0]}/{what}", encoding="utf-8") as file:
        return file.read()
    return ""


def _plain(name: str) -> str:
    """As the names of packages are compared, without their runs of dashes and dots."""
    return "-".join(each for each in name.replace("_", "-").replace(".", "-").lower().split("-") if each)


def _console_script(text: str, name: str) -> tuple[str, str] | None:
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip()
        elif section == "[console_scripts]" and line.partition("=")[0].strip() == name:
            module, _, function = line.partition("=")[2].partition("[")[0].strip().partition(":")
            return module.strip(), function.strip()
    return None


async def _wait_for(returned: Any) -> Any:
    return await returned

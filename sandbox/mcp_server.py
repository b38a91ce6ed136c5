"""MCP server: how a server of a package of others answers one call.

Each call has a server of its own. Its modules are imported before the call, in the process that all calls of the box are forked
from, as far as nothing of a call decides what they do then. The call's process forks once more: here is the one that asks, there
the server, which finds its pipes where a program finds its standard input and output. Nothing of it outlives the call.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from contextlib import contextmanager, suppress

from sandbox.call import PROGRESS_FD, REPORT_FD
from sandbox.mcp_results import ask_tool, read_result
from sandbox.package import DEPENDENCIES
from sandbox.server_imports import MAIN, ServerImports
from unitools import runtime
from unitools.mcp_conversation import PROGRESS_TOKEN, ServerEnded, ServerUnfit
from unitools.mcp_pipes import PipeConversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, NoReturn

_END_MS = 300  # for a server to end by itself when its input is closed
_LOOK_S = 0.01
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

    def find_entry(self, head: dict[str, Any]) -> Callable[..., Any]:
        """What answers the call, once all is imported that the server begins with."""
        sys.argv = [self._script or self.module, *self._arguments]
        os.environ.update(self._values())
        if not self._is_run_itself():
            importlib.import_module(self.module)
        asks = head["asks"]
        if not asks:
            return self.list_tools
        return lambda **arguments: self.call_tool(asks, arguments)

    def call_tool(self, asks: dict[str, Any], arguments: dict[str, Any]) -> Any:
        """``asks``: the ``tool`` by its own name, and whether its result is ``structured``."""
        params = {"name": asks["tool"], "arguments": arguments, "_meta": {"progressToken": PROGRESS_TOKEN}}
        with self._started() as talk:
            talk.initialize()
            result = ask_tool(talk, params)
        return read_result(result, structured=asks["structured"])

    def list_tools(self) -> dict[str, Any]:
        """``{protocol, tools}``: the revision that the server speaks, and the whole of its list."""
        with self._started() as talk:
            begun = talk.initialize()
            try:
                tools = talk.list_tools()
            except ServerUnfit as error:  # it has started, and what it lists is no list
                raise runtime.ResultInvalid(str(error)) from None
            return {"protocol": begun["protocolVersion"][:40], "tools": tools}

    def _is_run_itself(self) -> bool:
        """As ``python -m`` runs a module, but for a package's ``__main__``. Were it imported before, its code would run twice."""
        return not self._function and not os.path.isdir(f"{DEPENDENCIES}/{self.module.replace('.', '/')}")

    def _values(self) -> dict[str, str]:
        """The environment that the manifest gives to the server. What the tenant has not set is left out."""
        found: dict[str, str] = {}
        for each in self._environment:
            with suppress(LookupError):
                if "secret" in each:
                    found[each["name"]] = runtime.secret(each["secret"])
                else:
                    value = each["value"] if "value" in each else runtime.config()[each["config"]]
                    found[each["name"]] = value if isinstance(value, str) else str(value)
        if unfit := [name for name, value in found.items() if "\0" in value]:
            raise ValueError(f"{', '.join(unfit)}: a value holds a NUL character, which no environment can.")
        return found

    @contextmanager
    def _started(self) -> Iterator[PipeConversation]:
        its_input, ours = os.pipe()
        from_it, its_output = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._serve(its_input, its_output, (ours, from_it))
        os.close(its_input)
        os.close(its_output)
        talk = PipeConversation(from_it, ours, log=_log, note=runtime.warn, progress=runtime.progress)
        try:
            yield talk
        except ServerEnded:
            code = os.waitstatus_to_exitcode(end_process(pid, within_ms=_END_MS))
            pid = 0
            raise ServerUnfit(f"The server ended with exit code {code} before it answered.") from None
        finally:
            os.close(ours)
            if pid:
                talk.drain(_END_MS)
                end_process(pid)
            os.close(from_it)

    def _serve(self, its_input: int, its_output: int, ours: Sequence[int]) -> NoReturn:
        code = 1
        try:
            os.dup2(its_input, 0)
            os.dup2(its_output, 1)
            for each in {REPORT_FD, PROGRESS_FD, *ours, its_input, its_output}:  # what its modules have opened stays
                with suppress(OSError):
                    os.close(each)
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


def _log(line: str) -> None:
    print(line, flush=True)


def end_process(pid: int, within_ms: int = 0) -> int:
    """By itself within so long, else whatever it is doing; returns how it ended, 0 where the server has it that nobody is told."""
    with suppress(ChildProcessError):
        until = time.monotonic() + within_ms / 1000
        while time.monotonic() < until:
            if (ended := os.waitpid(pid, os.WNOHANG))[0]:
                return ended[1]
            time.sleep(_LOOK_S)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return os.waitpid(pid, 0)[1]
    return 0

"""Package lists: what a server of a package lists, seen in a box that is used once, without a network, files or secrets."""

from __future__ import annotations

from importlib.metadata import distributions
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django.conf import settings

from invocations.decide.profiles import give_kept_files
from invocations.run.server_probe import (
    CONTEXT,
    PLACEHOLDER,
    build_error,
    build_limits,
    listing_unfit,
    run_alone,
)
from invocations.sandbox.base import Profile, RunStatus, SandboxCall
from registry.dependencies.failures import CannotBuild, Failure
from registry.imports.lister import ListedServer
from registry.imports.sources import build_reach
from sandbox.image import BROWSER, NODE, PYTHON, find_image
from unitools.capabilities import Capabilities
from unitools.dependency_locks import normalize_name
from unitools.mcp_listings import Listing, ListingUnfit
from unitools.npm_names import is_of_npm
from unitools.packages import build_empty_zip

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.metadata import Distribution
    from pathlib import Path

    from unitools.brought_tools import ServerReach

MEMORY_BYTES = 256 * 1024 * 1024
KEPT = (20, 4 * 1024 * 1024)  # as a manifest has it by default


def list_package(source: dict[str, Any], folder: Path, beat: Callable[[], None]) -> ListedServer:
    """Raises :class:`CannotBuild` with what a person can do."""
    package, reach = source["package"], build_reach(source)
    start, version = source["start"], source["version"]
    if not is_of_npm(package):
        found = next(
            each
            for each in distributions(path=[str(folder)])
            if normalize_name(each.name or "") == normalize_name(package)
        )
        version = found.version
        if "script" not in start and "module" not in start:
            start = {"script": choose_script(found, package)} | start
    call = SandboxCall(
        name=f"import-{uuid4().hex}",
        package=build_empty_zip(),
        module="",
        entry="",
        arguments=b"{}",
        context=CONTEXT | {"call_id": "import", "tool_id": "import", "tool_version": version},
        labels={"toolhub.tool": "import"},
        dependencies=folder,
        server=start | {"package": package},
        secrets={each["secret"]: PLACEHOLDER for each in start.get("environment", ()) if "secret" in each},
        image=_find_image(package, reach),
    )
    programs = Capabilities.from_json({"proc": reach.describe().get("capabilities", {}).get("proc", [])})
    profile = give_kept_files(
        Profile(build_limits(MEMORY_BYTES), programs, isolation="single"), KEPT if reach.keeps else None
    )
    outcome = run_alone(call, profile, beat)
    if outcome.status is not RunStatus.OK:
        raise build_error(outcome)
    try:
        return ListedServer(Listing.from_json(outcome.value), version, start)
    except ListingUnfit as error:
        raise CannotBuild(listing_unfit(str(error))) from error


def _find_image(package: str, reach: ServerReach) -> str:
    """What the engine calls the image that the server is started in; empty: the usual one."""
    usual = BROWSER if reach.browser else NODE if is_of_npm(package) else PYTHON
    name = reach.choose_image().get("image", usual)
    try:
        return "" if name == PYTHON else find_image(name, settings.TOOLHUB_SANDBOX_IMAGES)
    except KeyError:
        raise CannotBuild(
            Failure(
                "image_missing",
                f"This hub has no sandbox image {name!r}.",
                "Operators: add one that has the program to TOOLHUB_SANDBOX_IMAGES; then retry.",
            )
        ) from None


def choose_script(found: Distribution, package: str) -> str:
    """The one program that the package brings, or the one of its name."""
    names = sorted(each.name for each in found.entry_points if each.group == "console_scripts")
    if len(names) == 1:
        return names[0]
    if package in names:
        return package
    listed = ", ".join(names)[:200]
    why = f"{package} brings several programs: {listed}." if names else f"{package} brings no program."
    raise CannotBuild(Failure("no_program", why, "Say which program is the server."))

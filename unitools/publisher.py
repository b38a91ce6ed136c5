"""Publisher: what a hub needs to know of the tools of a Universe, and the code that it runs.

Each tool has a manifest, made from the same object that runs. Beside the author's files the package holds one generated module,
``unitools_entries``, with a function for each tool: the hub calls that, and it calls the tool through :mod:`unitools.boxed`.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from unitools.hub_context import collect_requested_inputs
from unitools.manifest_validation import PublicationFinding
from unitools.metadata import derive_hub_segment
from unitools.publications import Publication, check_group, derive_package_name, validate_document
from unitools.source_locations import locate_function

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from unitools.metadata import ToolMetadata
    from unitools.universe_loader import LoadedUniverse

ENTRIES = "unitools_entries"
RUNS_ON = ("anyio", "pydantic")  # what the SDK in the sandbox needs, in the versions that the author has
_EFFECTS = {"browser": "Browser", "proc": "Process", "net": "Network", "cidr": "Network", "fs": "Filesystem"}
_MADE = frozenset({"id", "version", "input_schema", "output_schema", "implementation", "manifest_version"})


def needed_packages() -> list[str]:
    """``name==version`` of each, as installed here. ``PackageNotFoundError`` when one is not."""
    return [f"{name}=={version(name)}" for name in RUNS_ON]


def build_manifest(
    tool: ToolMetadata,
    *,
    group: str,
    version: str,
    module: str,
    provided: Collection[str] = (),
    dependencies: Sequence[str] = (),
) -> tuple[dict[str, Any], list[PublicationFinding]]:
    """The manifest of one tool and what is wrong with it. ``module`` holds the function that answers for it in a hub."""
    said = dict(tool.manifest)
    findings = [
        PublicationFinding(tool.name, f"/{name}", f"{name} is made from the function; leave it out of manifest=.")
        for name in sorted(_MADE & set(said))
    ]
    asked = collect_requested_inputs(tool, provided)
    segment = derive_hub_segment(tool.name)
    document: dict[str, Any] = {
        "id": f"{group}.{segment}",
        "version": version,
        "display_name": (tool.spec.title or tool.name)[:80],
        "description": tool.spec.description,
        "tags": sorted(tool.tags),
        "input_schema": dict(tool.spec.parameters),
        "output_schema": dict(tool.spec.output_schema or {}),
        "side_effect": tool.side_effect or _effect_of(tool, said),
        "implementation": {"module": module, "entry": name_entry(segment)},
        "dependencies": _all_needed(dependencies, said.get("dependencies", ())),
    }
    if tool.safety_class != "Low":
        document["safety_class"] = tool.safety_class
    elif document["side_effect"] in ("Write", "Process"):
        document["safety_class"] = "Medium"
    if document["side_effect"] == "Write" and tool.spec.annotations.idempotent:
        document["idempotency"] = "keyed"
    if tool.timeout is not None:
        document["timeout_ms"] = round(tool.timeout * 1000)
    if tool.ttl_seconds is not None:
        document["ttl_seconds"] = tool.ttl_seconds
    if tool.serial_group:
        document["concurrency"] = "serial"
    document |= {name: each for name, each in said.items() if name not in {*_MADE, "dependencies"}}
    if asked.config_schema is not None:
        document["config_schema"] = asked.config_schema
    if asked.secrets:
        document["secrets"] = asked.secrets
    if not document["description"]:
        findings.append(
            PublicationFinding(tool.name, "/description", "Give the function a docstring: models choose tools by it.")
        )
    else:
        findings += validate_document(document, tool.name)
    return document, [*findings, *asked.findings]


def _effect_of(tool: ToolMetadata, said: Mapping[str, Any]) -> str:
    """Where the author names none: the gravest thing that the capabilities allow. Without any a tool reaches its own code only."""
    if tool.spec.annotations.destructive:
        return "Write"
    asked = said.get("capabilities") or {}
    return next((effect for name, effect in _EFFECTS.items() if asked.get(name)), "None")


def _all_needed(ours: Sequence[str], said: Sequence[str]) -> list[str]:
    """What the author names himself wins."""
    named = {each.partition("==")[0].partition("[")[0].strip().lower() for each in said}
    return sorted({*said, *(each for each in ours if each.partition("==")[0] not in named)})


def name_entry(segment: str) -> str:
    return f"tool_{segment}"


def build_publication(loaded: LoadedUniverse, *, group: str = "", version: str = "") -> Publication:
    """All tools of a Universe. ``group`` and ``version``: in place of its own. ``ValueError`` where nobody names the group."""
    universe = loaded.universe
    group = check_group(group or universe.name)
    version = version or universe.version
    package = loaded.words[0] if loaded.is_package else derive_package_name(group)
    findings: list[PublicationFinding] = []
    if not version:
        findings.append(
            PublicationFinding("", "/version", 'Say which version this is: Universe("…", version="1.0.0").')
        )
    try:
        dependencies = needed_packages()
    except PackageNotFoundError as missing:
        findings.append(PublicationFinding("", "/dependencies", f"{missing.name} is not installed here."))
        dependencies = []
    manifests, names = [], {}
    for tool in universe.tools:
        document, wrong = build_manifest(
            tool,
            group=group,
            version=version,
            module=f"{package}.{ENTRIES}",
            provided=universe.provided,
            dependencies=dependencies,
        )
        manifests.append(document)
        names[document["id"]] = tool.name
        findings += wrong if version else [each for each in wrong if each.pointer != "/version"]
    if not manifests:
        findings.append(PublicationFinding("", "", "The Universe has no tools."))
    files = dict(loaded.files) if loaded.is_package else _as_package(loaded, package)
    files[f"{package}/{ENTRIES}.py"] = build_entries_source(loaded, package, names.values()).encode()
    places = {tool.name: locate_function(tool.fn) for tool in universe.tools}
    return Publication(package, tuple(manifests), files, names, tuple(findings), places)


def build_manifests(tools: Sequence[ToolMetadata], *, version: str) -> list[dict[str, Any]]:
    """Of tools of one Universe, of which nobody asks here what it provides. ``ValueError`` with the first thing that no hub takes."""
    made = []
    for tool in tools:
        group = check_group(tool.id.rpartition(".")[0])
        document, findings = build_manifest(
            tool,
            group=group,
            version=version,
            module=f"{derive_package_name(group)}.{ENTRIES}",
            provided=tool.injected_params.values(),
            dependencies=needed_packages(),
        )
        if wrong := [each for each in findings if each.severity == "error"]:
            raise ValueError(f"{tool.name}{wrong[0].pointer}: {wrong[0].message}")
        made.append(document)
    return made


def _as_package(loaded: LoadedUniverse, package: str) -> dict[str, bytes]:
    (content,) = loaded.files.values()
    return {f"{package}/__init__.py": b"", f"{package}/{loaded.words[0]}.py": content}


def build_entries_source(loaded: LoadedUniverse, package: str, names: Collection[str]) -> str:
    """The generated module: the same for the same tools, so that the digest of the package says nothing else."""
    words = loaded.words if loaded.is_package else (package, loaded.words[0])
    module = ".".join(word for word in words if word != "__init__")
    lines = [
        '"""Which function answers for which tool in a hub? Written by unitools; not to be edited."""',
        "",
        "from __future__ import annotations",
        "",
        f"from {module} import {loaded.attribute} as _universe",
        "from unitools.boxed import answer as _answer",
    ]
    for name in names:
        head = f"async def {name_entry(derive_hub_segment(name))}(**arguments: object) -> object:"
        lines += ["", "", head, f"    return await _answer(_universe, {name!r}, arguments)"]
    return "\n".join(lines) + "\n"

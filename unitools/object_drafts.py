"""Object drafts: the source file and the manifest of a tool that was brought from Python code of others.

Both are for a person to read and to change: the source file is an ordinary tool, whose `build` makes the object in each call. A second
run keeps what a person has written, and takes over only what the object says otherwise than it did.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.brought_objects import CREWAI, FRAMEWORKS, FUNCTION, LANGCHAIN, SOURCE_FOLDER
from unitools.brought_tools import (
    FIRST_VERSION,
    MAX_CHOSEN,
    CannotBring,
    check_text,
    raise_requirement,
    raise_version,
    walk_texts,
)
from unitools.changes import compare_manifests, compute_needed_bump
from unitools.metadata import derive_hub_segment
from unitools.publications import derive_package_name, find_id_collisions, validate_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unitools.changes import ManifestChange

MEMORY_BYTES = {CREWAI: 1024 * 1024 * 1024}  # its import alone takes a quarter of that
# What a draft takes from its object anew where that has it otherwise; all else of a manifest is its author's.
OF_OBJECT = (
    "display_name", "description", "input_schema", "output_schema", "side_effect", "safety_class", "capabilities", "secrets",
    "config_schema", "dependency_constraints",
)  # fmt: skip
_CALLS = {LANGCHAIN: "call_langchain_tool", CREWAI: "call_crewai_tool", FUNCTION: "call_function"}
_SOURCES = {
    "config": 'runtime.config()["{}"]',
    "secret": 'runtime.secret("{}")',
    "call": "runtime.current_call().{}",
}
_OF_CALL = frozenset({"call_id", "locale", "currency", "timezone", "request_id", "session_id", "idempotency_key"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_KEY = re.compile(r"(config|secret|call)\.([A-Za-z_][A-Za-z0-9_]{0,63})")


@dataclass(frozen=True, slots=True)
class ObjectChoices:
    """What a person says of one object. ``secrets``: names of the environment. ``environment``: names and fixed values.
    ``injected``: parameters that a model must not give, and where each comes from."""

    effect: str = ""
    secrets: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    injected: Mapping[str, str] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BroughtObject:
    """``reference`` is ``module:name``; ``description`` what a trial saw of it. ``origin``: the package that brings it with its
    version, or the digest of the author's own modules. ``is_ahead``: its module is imported before the call.
    ``needs``: names of the environment that it cannot be made without."""

    reference: str
    description: dict[str, Any]
    digest: str
    is_class: bool
    origin: dict[str, str]
    is_ahead: bool = False
    needs: tuple[str, ...] = ()

    @property
    def is_own(self) -> bool:
        return "package" not in self.origin


@dataclass(frozen=True, slots=True)
class ObjectDraft:
    """``made`` and ``made_source``: as the object alone has it, by which the next run compares. ``changes``: in the manifest that was
    there; None: there was none. ``source_difference``: what the source file would have otherwise, where a person wrote another."""

    document: dict[str, Any]
    made: dict[str, Any]
    source: str
    made_source: str
    changes: list[ManifestChange] | None = None
    source_difference: str = ""


def derive_object_group(module: str) -> str:
    """``python.weather`` for the module ``weather.reports``."""
    word = re.sub(r"[^a-z0-9_]", "_", module.partition(".")[0].lower()).strip("_") or "tools"
    return f"python.{word if word[0].isalpha() else f'p_{word}'}"


def derive_object_id(group: str, brought: BroughtObject) -> str:
    name = str(brought.description["name"])
    if not name:
        raise CannotBring(f"{brought.reference} has no name. Give it one.")
    return f"{group}.{derive_hub_segment(name)}"


def draft_objects(
    objects: Sequence[BroughtObject],
    group: str,
    choices: Mapping[str, ObjectChoices],
    dependencies: Sequence[str],
    existing: Sequence[dict[str, Any]] = (),
    sources: Mapping[str, str] | None = None,
    earlier: Mapping[str, dict[str, Any]] | None = None,
) -> list[ObjectDraft]:
    """Drafts of these objects. ``choices``: by references; ``existing``: manifests of an earlier run; ``sources``: the source files
    that are there, by ids; ``earlier``: what that run made, by references, each ``{"made": …, "source": …}``.
    """
    if len(objects) > MAX_CHOSEN:
        raise CannotBring(f"At most {MAX_CHOSEN} objects are brought at once; these are {len(objects)}.")
    ids: dict[str, list[str]] = {}
    for each in objects:
        ids.setdefault(derive_object_id(group, each), []).append(each.reference)
    if collisions := find_id_collisions(ids):
        raise CannotBring(" ".join(each.message for each in collisions))
    before = {str(each["id"]): each for each in existing}
    drafts = []
    for each in objects:
        id = derive_object_id(group, each)
        made = _make_manifest(each, id, choices[each.reference], dependencies)
        text = build_source(each, choices[each.reference])
        was = before.get(id)
        if was is not None and was.get("origin", {}).get("object", {}).get("name") != each.reference:
            raise CannotBring(
                f"The manifest of {id} was brought from another object. Remove it, or choose another --group."
            )
        drafts.append(_merge(was, made, (sources or {}).get(id), text, (earlier or {}).get(each.reference, {})))
    return drafts


def _merge(
    before: dict[str, Any] | None, made: dict[str, Any], kept: str | None, text: str, earlier: dict[str, Any]
) -> ObjectDraft:
    was_made, was_text = earlier.get("made"), earlier.get("source")
    is_mine = kept is not None and kept not in (text, was_text)
    source = kept if is_mine and kept is not None else text
    difference = _show_difference(was_text or "", text) if is_mine and was_text != text else ""
    if before is None:
        return ObjectDraft(made, made, source, text, source_difference=difference)
    document = before | {"origin": made["origin"]}
    for name in OF_OBJECT:
        if was_made is None or was_made.get(name) != made.get(name):
            document.pop(name, None)
            document |= {name: made[name]} if name in made else {}
    for each in made.get("dependencies", ()):
        document["dependencies"] = raise_requirement(document.get("dependencies", []), each)
    if before.get("dependencies") != document.get("dependencies"):
        document.pop("dependency_lock", None)  # of other packages; the hub finds out anew
    changes = compare_manifests(before, document)
    if changes or (kept is not None and source != kept):
        bump = compute_needed_bump(changes) if changes else "patch"
        document["version"] = raise_version(str(before["version"]), bump)
    return ObjectDraft(document, made, source, text, changes, difference)


def _show_difference(was: str, text: str) -> str:
    return "".join(difflib.unified_diff(was.splitlines(True), text.splitlines(True), "as it was made", "as it is made"))


def _make_manifest(
    brought: BroughtObject, id: str, choices: ObjectChoices, dependencies: Sequence[str]
) -> dict[str, Any]:
    said = brought.description
    for at, text in walk_texts({**said, "notes": []}, ""):
        check_text(str(said["name"])[:60], at, text)
    group, _, segment = id.rpartition(".")
    effect = choices.effect or "Write"
    made: dict[str, Any] = {
        "id": id,
        "version": FIRST_VERSION,
        "display_name": str(said["name"])[:80],
        "description": said["description"] or f"{said['name']}. Its author says nothing about it.",
        "input_schema": said["input_schema"],
        "output_schema": said["output_schema"],
        "side_effect": effect,
        "safety_class": "Medium" if effect in ("Write", "Process") else "Low",
        "timeout_ms": 30_000,
        "determinism": {"output": "none"},
        "implementation": {"module": f"{derive_package_name(group)}.{segment}", "entry": "run"},
        "origin": {
            "object": {"name": brought.reference, "framework": said["framework"]} | brought.origin,
            "object_digest": brought.digest,
        },
        "dependencies": list(dependencies),
    }
    if choices.hosts:
        made["capabilities"] = {"net": [{"host": each} for each in choices.hosts]}
    if secrets := _list_secrets(brought, choices):
        made["secrets"] = secrets
    if config := _make_config(brought, choices):
        made["config_schema"] = config
    if said["has_artifact"]:
        made["limits"] = {"artifacts": 1, "artifact_bytes": 4 * 1024 * 1024}
    if said["framework"] in MEMORY_BYTES:
        made["limits"] = {"memory_bytes": MEMORY_BYTES[said["framework"]]}
    if choices.constraints:
        made["dependency_constraints"] = list(choices.constraints)
    if wrong := [each for each in validate_document(made, str(said["name"])) if each.severity == "error"]:
        raise CannotBring(f"No manifest can be made of {brought.reference}: {wrong[0].message} ({wrong[0].pointer})")
    return made


def _list_secrets(brought: BroughtObject, choices: ObjectChoices) -> list[dict[str, Any]]:
    """What stands in the environment, and what its own signature or ``--inject`` takes from the tenant's secrets."""
    found = {str(each["name"]): dict(each) for each in brought.description["secrets"]}
    for name, said in _list_environment(brought, choices).items():
        about = said["description"] or f"{brought.reference} reads it from its environment, as {name}."
        found[name.upper()] = {"name": name.upper(), "description": about[:500], "required": said["required"]}
    for key in _keys_of(brought, choices).values():
        kind, _, name = key.partition(".")
        if kind == "secret":
            about = f"Given to {brought.reference}; no model sees it."
            found.setdefault(name, {"name": name, "description": about[:500], "required": True})
    if choices.hosts:
        found = {name: each | {"hosts": list(choices.hosts)} for name, each in found.items()}
    return list(found.values())


def _list_environment(brought: BroughtObject, choices: ObjectChoices) -> dict[str, dict[str, Any]]:
    """Names of the environment that are secrets: those that the object declares itself, and those of this run."""
    declared = {
        each["name"]: each for each in brought.description["env_vars"] if each["name"] not in choices.environment
    }
    if unfit := [name for name in declared if not _NAME.fullmatch(name)]:
        raise CannotBring(f"{brought.reference} declares what is no name of the environment: {unfit[0][:60]!r}.")
    return declared | {
        name: {"name": name, "description": "", "required": True}
        for name in (*brought.needs, *choices.secrets)
        if name not in declared
    }


def _keys_of(brought: BroughtObject, choices: ObjectChoices) -> dict[str, str]:
    """Where each injected parameter comes from."""
    found = {}
    for name in brought.description["injected"]:
        if not _NAME.fullmatch(name):
            raise CannotBring(f"{brought.reference} takes what is no name of a parameter: {name[:60]!r}.")
        key = choices.injected.get(name, "")
        said = _KEY.fullmatch(key)
        if said is None or (said[1] == "call" and said[2] not in _OF_CALL):
            raise CannotBring(
                f"{brought.reference} takes {name}, which no model may give. Say where it comes from: --inject "
                f"{name}=config.{name} for what each tenant sets, {name}=secret.{name.upper()} for a secret, or one of "
                f"{', '.join(f'call.{each}' for each in sorted(_OF_CALL))}."
            )
        found[name] = key
    return found


def _make_config(brought: BroughtObject, choices: ObjectChoices) -> dict[str, Any] | None:
    asked = brought.description["config_schema"]
    properties = dict((asked or {}).get("properties", {}))
    required = list((asked or {}).get("required", ()))
    for name, key in _keys_of(brought, choices).items():
        kind, _, word = key.partition(".")
        if kind == "config" and word not in properties:
            properties[word] = brought.description["injected"][name]
            required.append(word)
    if not properties:
        return None
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": required}


def build_source(brought: BroughtObject, choices: ObjectChoices) -> str:
    """The source file of one tool. The same object gives the same text."""
    module, _, name = brought.reference.partition(":")
    environment = _environment_lines(brought, choices)
    target = f"brought.{name}" if brought.is_ahead else f'load_object("{brought.reference}")'
    call = _call_of(brought, choices)
    head = f"""\
\"\"\"``{brought.reference}``, as `unitools bring python` took it. The file is yours to read and to change.

What stands in `build` is done in each call, in a process of its own: nothing that the object keeps is there in the next one.
\"\"\"

from __future__ import annotations
"""
    standard = [
        each for each in ("os", "sys") if any(f"{each}." in line for line in (*environment, *_own_lines(brought)))
    ]
    imports = [f"import {each}" for each in standard]
    if any("suppress" in line for line in environment):
        imports.append("from contextlib import suppress")
    imports += ["from typing import Any", ""]
    first, _ = FRAMEWORKS[brought.description["framework"]]
    imports.append(f"import {first}  # noqa: F401  what stands here is imported before the call")
    if brought.is_ahead:
        imports.append(f"import {module} as brought")
    if any("runtime." in line for line in (*environment, call)):
        imports.append("from unitools import runtime")
    helpers = sorted({call.partition("(")[0]} | (set() if brought.is_ahead else {"load_object"}))
    imports += [f"from unitools.brought_objects import {', '.join(helpers)}", *_own_lines(brought)]
    body = [
        "def build() -> Any:",
        '    """The object itself."""',
        *environment,
        f"    return {target}{'()' if brought.is_class else ''}",
        "",
        "",
        "def run(**arguments: Any) -> Any:",
        f"    return {call}",
        "",
        "",
        "def describe() -> Any:",
        '    """What it says of itself. A hub asks before the review, and holds it against the manifest."""',
        "    from unitools.object_descriptions import describe_object  # noqa: PLC0415  no call needs it",
        "",
        "    return describe_object(build())",
    ]
    return "\n".join([head, *imports, "", "", *body, ""])


def _own_lines(brought: BroughtObject) -> list[str]:
    if not brought.is_own:
        return []
    return ["", f'sys.path.insert(0, f"{{os.path.dirname(__file__)}}/{SOURCE_FOLDER}")  # the modules that came along']


def _call_of(brought: BroughtObject, choices: ObjectChoices) -> str:
    framework = brought.description["framework"]
    given = ["build()", "arguments"]
    if injected := [f'"{name}": {_expression(key)}' for name, key in _keys_of(brought, choices).items()]:
        given.append(f"injected={{{', '.join(injected)}}}")
    if brought.description["asynchronous"]:
        given.append("asynchronous=True")
    return f"{_CALLS[framework]}({', '.join(given)})"


def _environment_lines(brought: BroughtObject, choices: ObjectChoices) -> list[str]:
    found = [f'    os.environ["{name}"] = {value!r}' for name, value in choices.environment.items()]
    for name, said in _list_environment(brought, choices).items():
        line = f'os.environ["{name}"] = runtime.secret("{name.upper()}")'
        if said["required"]:
            found.append(f"    {line}")
        else:
            found += ["    with suppress(LookupError):  # a tenant may do without it", f"        {line}"]
    return found


def _expression(key: str) -> str:
    kind, _, name = key.partition(".")
    return _SOURCES[kind].format(name)

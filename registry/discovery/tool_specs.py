"""Tool specs: what a model sees of a tool, and which tool it means by what it saw.

Its name, what it is for and what it takes (TOOLS-12), as the drivers of :mod:`unitools.dialects` render it. Scopes, capabilities,
consents and tags stay behind. Every way in which models are told of tools shows them by :func:`build_spec`. What a model writes is
read with what the database says (:func:`reading_for`): nothing of a rendering is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.utils.crypto import salted_hmac

from registry.models import Installation, InstallationState, ToolKind
from registry.problems import UnknownDialect
from registry.versions.compiler import compiled_version
from unitools.calls import Annotations, ToolSpec
from unitools.dialects import DRIVERS, DialectError, ReadOptions, find_driver
from unitools.dialects.tool_names import build_id_pattern, derive_tool_name, map_dialect_names, restore_tool_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from kernel.principal import Principal
    from unitools.dialects import Driver
    from unitools.manifest import Manifest

DIALECTS = tuple(driver.dialect for driver in DRIVERS)
READS = frozenset({"None", "Read"})


def build_spec(manifest: Manifest) -> ToolSpec:
    """The tool under its id, which models know it by in dialects that take every name."""
    return ToolSpec(
        name=manifest.id,
        description=manifest.description,
        parameters=manifest.input_schema,
        title=manifest.display_name,
        output_schema=manifest.output_schema,
        annotations=build_annotations(manifest),
    )


def build_annotations(manifest: Manifest) -> Annotations:
    """Hints from what was reviewed. Where the manifest does not rule something out, the hint says that it may happen.

    A tool that honours an Idempotency-Key is not called idempotent for that: two calls without the key have two effects, and
    whoever reads the hint sends none. So only what changes nothing is.
    """
    reads = manifest.side_effect in READS
    return Annotations(
        read_only=reads,
        destructive=is_destructive(side_effect=manifest.side_effect, safety_class=manifest.safety_class),
        idempotent=reads,
        open_world=bool({"net", "browser"} & set(manifest.domains)) or manifest.side_effect in ("Network", "Browser"),
    )


def is_destructive(*, side_effect: str, safety_class: str) -> bool:
    """Whether a call may change or remove something. What a model wrote for such a call is never repaired."""
    return side_effect not in READS and (side_effect != "Network" or safety_class == "High")


def nonce_key(tenant_id: UUID) -> bytes:
    """What marks the hub's renderings for a tenant in text, so that a call that was quoted from elsewhere is not run."""
    return salted_hmac("registry.showing_to_models", tenant_id.hex, algorithm="sha256").digest()


def names_in(dialect: str, tools: Iterable[str]) -> dict[str, str]:
    """Name in the dialect → tool, of all tools that the tenant has installed, whoever may call them.

    Of two that would have one name neither has it: it must not come to mean the other one when a grant is given or revoked.
    """
    return map_dialect_names(dialect, sorted(tools), on_collision="skip")


def find_tool_id(name: str, *, by: Principal) -> str:
    """The id of the tool that a client means by a name or an id. What is neither stays as it is, for the decision to refuse.

    Of tools that were removed too: who has an old list is told what became of the tool.
    """
    if id := restore_tool_id(name):
        return id
    if (pattern := build_id_pattern(name)) is None:
        return name
    rows = Installation.objects.visible_to(by).of_kind(ToolKind.TOOL).filter(name__regex=pattern)
    likely = [(id, state) for id, state in rows.values_list("name", "state") if derive_tool_name(id) == name]
    there = {id for id, state in likely if state != InstallationState.REMOVED}
    found = there or {id for id, _ in likely}
    return found.pop() if len(found) == 1 else name


class InstalledSchemas(Mapping[str, Mapping[str, Any]]):
    """What tools take, by their names; each is looked up when it is asked for."""

    def __init__(self, versions: Mapping[str, UUID]) -> None:
        self._versions = versions

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        return compiled_version(self._versions[name]).manifest.input_schema

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)


def reading_for(dialect: str, *, by: Principal, with_schemas: bool = False) -> ReadOptions:
    """What a driver needs to read calls of the tenant's tools. ``with_schemas``: where arguments come as bare text."""
    rows = (
        Installation.objects.visible_to(by)
        .of_kind(ToolKind.TOOL)
        .exclude(state=InstallationState.REMOVED)
        .values_list("name", "version__side_effect", "version__safety_class", "version_id")
    )
    tools = {name: (side_effect or "", safety_class or "") for name, side_effect, safety_class, _ in rows}
    versions = {name: version_id for name, *_, version_id in rows if version_id} if with_schemas else {}
    return ReadOptions(
        names=names_in(dialect, tools),
        destructive=frozenset(
            name for name, said in tools.items() if is_destructive(side_effect=said[0], safety_class=said[1])
        ),
        key=nonce_key(by.tenant_id),
        schemas=InstalledSchemas(versions),
    )


def known_driver(dialect: str, *, model: str = "") -> Driver:
    """The driver of a dialect, or the one that serves a model. Raises :class:`UnknownDialect`."""
    try:
        if dialect in DIALECTS or (model and not dialect):
            return find_driver(dialect or model)
    except DialectError as error:
        raise UnknownDialect(str(error), details={"dialects": list(DIALECTS)}) from error
    raise UnknownDialect(
        f"There is no dialect {dialect[:40]!r}.",
        details={"dialects": list(DIALECTS)},
        remedy=f"Use one of {', '.join(DIALECTS)}.",
    )

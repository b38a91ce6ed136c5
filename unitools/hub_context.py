"""Hub context: where a hub takes from what is injected into a tool.

Locally the caller of ``dispatch`` gives a context. A hub has none: an agent may name no value that a model must not give. So the key
says where the value comes from, and what cannot be had is refused before the tool is published:

========================  ======================================================================================================
``call``, ``call.locale``  :func:`unitools.runtime.current_call`, or one of its fields
``config``, ``config.x``   what the tenant set for its installation: all of it, or one property, which the manifest then asks for
``secret.NAME``            the value that the tenant keeps under this name, which the manifest then asks for
any other key              a property of ``config_schema`` or a name of ``secrets`` that the tool's ``manifest=`` declares;
                           what the Universe itself provides under the key; or else the parameter's default
========================  ======================================================================================================

Who acts is not among them: no tool is told, since none may decide by it. The hub's grants and policies do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from unitools.annotations import get_parameter_type
from unitools.boxed import CALL, CONFIG, OF_CALL, SECRET
from unitools.manifest_validation import PublicationFinding

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from unitools.injection import InjectedParameter
    from unitools.metadata import ToolMetadata


class RequestedInputs(NamedTuple):
    """What the manifest has to ask a tenant for, so that everything can be injected."""

    config_schema: dict[str, Any] | None
    secrets: list[dict[str, Any]]
    findings: list[PublicationFinding]


def collect_requested_inputs(tool: ToolMetadata, provided: Collection[str] = ()) -> RequestedInputs:
    """``provided``: the keys that the Universe itself has a value for."""
    declared, config, secrets = _declared(tool.manifest)
    findings: list[PublicationFinding] = []
    for each in tool.injected:
        if each.is_context:
            continue
        kind, _, name = each.key.partition(".")
        if kind == CONFIG and name and name not in config["properties"]:
            config["properties"][name] = _schema_of(tool, each, findings)
            if not each.has_default:
                config["required"] = [*config.get("required", ()), name]
        elif kind == SECRET and name and name not in {secret["name"] for secret in secrets}:
            secrets.append(
                {
                    "name": name,
                    "description": f"Given to {tool.name} as {each.parameter}.",
                    "required": not each.has_default,
                }
            )
        elif kind == CALL and (not name or name in OF_CALL):
            continue
        elif kind not in (CONFIG, SECRET) and each.key not in declared and each.key not in provided:
            findings.append(_nobody_gives(tool, each))
    schema = config if config["properties"] or "config_schema" in tool.manifest else None
    return RequestedInputs(schema, secrets, findings)


def _declared(manifest: Mapping[str, Any]) -> tuple[set[str], dict[str, Any], list[dict[str, Any]]]:
    config = dict(manifest.get("config_schema") or {"type": "object", "additionalProperties": False})
    config["properties"] = dict(config.get("properties") or {})
    secrets = [dict(each) for each in manifest.get("secrets") or ()]
    return {*config["properties"], *(each["name"] for each in secrets)}, config, secrets


def _schema_of(tool: ToolMetadata, wanted: InjectedParameter, findings: list[PublicationFinding]) -> dict[str, Any]:
    """Of the injected parameter, from its annotation; it must be something that JSON can hold."""
    try:
        schema: dict[str, Any] = TypeAdapter(get_parameter_type(tool.fn, wanted.parameter)).json_schema()
    except (PydanticUserError, PydanticInvalidForJsonSchema, TypeError) as error:
        findings.append(
            PublicationFinding(
                tool.name, "/config_schema", f"{wanted.parameter} is no value that JSON can hold: {error}"[:300]
            )
        )
        return {}
    return schema


def _nobody_gives(tool: ToolMetadata, wanted: InjectedParameter) -> PublicationFinding:
    if wanted.has_default:
        return PublicationFinding(
            tool.name,
            "",
            f"Nobody gives {wanted.key!r} in a hub, so {wanted.parameter} always has its default there.",
            "warning",
        )
    return PublicationFinding(
        tool.name,
        "",
        f"Nobody gives {wanted.key!r} in a hub. Say where {wanted.parameter} comes from: Injected('config.{wanted.parameter}') "
        f"for what each tenant sets, Injected('secret.{wanted.parameter.upper()}') for a key, Injected('call') for the call; "
        "let the Universe provide it; or give it a default.",
    )

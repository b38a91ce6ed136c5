"""Models: whether a manifest claims to be one. A tenant connects its models to the hub, which writes their manifests itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.checks.findings import declare_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding

MODEL_GROUP = "model"

MODEL_FIELD = declare_rule(
    "model.written_by_author",
    "Only the hub writes manifests of models.",
    "Remove the field. A model is connected to the hub, under its provider.",
)
MODEL_ID = declare_rule(
    "model.group_reserved",
    f"The group {MODEL_GROUP} is for the models that a tenant connects.",
    "Choose another group for the tool.",
)


def check_is_no_model(document: Any) -> Iterator[ManifestFinding]:
    """Asked before the shape: what is meant as a model is not told that its implementation is missing."""
    if not isinstance(document, dict):
        return
    if "model" in document:
        yield MODEL_FIELD.at(("model",), "A package is a tool, and this field is of a model.")
    if str(document.get("id", "")).partition(".")[0] == MODEL_GROUP:
        yield MODEL_ID.at(("id",), f"A tool cannot be of the group {MODEL_GROUP}.")

"""Decision input: what policies get to know of a call, and what of it is written down.

The same flat dict decides and goes into the Begin fact, so that another policy can be tried on the call later. Facts are for
everybody who verifies them: what a caller has said in its own words is written down only when a manifest or a rule says the
same word; else the call counts as one that lacks the attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from access.policies.conditions import iter_tests
from kernel.ids import encode
from registry.tools.callability import is_same_model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from access.policies.compiler import CompiledPolicy
    from invocations.calls import CallRequest
    from registry.decision_context import DecisionContext
    from registry.versions.compiler import CompiledVersion

OWN_WORDS = ("model", "client_app")


def build_attributes(
    call: CallRequest,
    version: CompiledVersion,
    decision_context: DecisionContext,
    *,
    size: int,
    consent: bool,
    data_classes: Iterable[str] = (),
    allow_sensitive: bool = False,
) -> dict[str, Any]:
    """By access.policies.attributes. ``size``: bytes of the arguments; ``consent``: whether one fits the call. ``data_classes`` and
    ``allow_sensitive``: of a request to a model.
    """
    envelope, models = call.envelope, version.manifest.models
    model = envelope.client.get("model", "")
    found = version.attributes | {
        "agent": encode("agt", decision_context.agent_id),
        "agent_name": decision_context.agent_name,
        "origin": str(call.origin),
        "dry_run": envelope.dry_run,
        "user_present": bool(envelope.user_id),
        "consent": consent,
        "data_classes": sorted(data_classes),
        "allow_sensitive": allow_sensitive,
        "bytes_in": size,
        "hour": decision_context.at.hour,
        "weekday": decision_context.at.isoweekday(),
        "trusted": decision_context.installed is not None and decision_context.installed.trusted,
        "signed": decision_context.installed is not None and bool(decision_context.installed.signed_by),
    }
    if decision_context.installed is not None and decision_context.installed.signed_by:
        found["signed_by"] = decision_context.installed.signed_by
    if model:
        found["model"] = model
    if model or not models:
        found["model_compatible"] = not models or any(is_same_model(model, each) for each in models)
    if app := envelope.client.get("app"):
        found["client_app"] = app
    return found


_words: dict[str, frozenset[Any]] = {}
MAX_DOCUMENTS = 4096


def collect_compared_texts(layer: CompiledPolicy) -> frozenset[Any]:
    """What the rules of a policy compare a caller's own words with. Documents never change: found once by their digest."""
    if layer.digest not in _words:
        if len(_words) >= MAX_DOCUMENTS:
            _words.clear()
        tests = (test for rule in layer.rules for test in iter_tests(rule.condition))
        asked = [test for test in tests if test.attribute in OWN_WORDS]
        _words[layer.digest] = frozenset(test.value for test in asked if test.ask == "equals").union(
            *(test.value for test in asked if test.ask == "in")
        )
    return _words[layer.digest]


def redact_attributes(
    attributes: dict[str, Any], layers: Iterable[CompiledPolicy], models: Iterable[str]
) -> dict[str, Any]:
    """The attributes as a fact may hold them."""
    own = [name for name in OWN_WORDS if name in attributes]
    if not own:
        return attributes
    known = frozenset(models).union(*(collect_compared_texts(layer) for layer in layers))
    return {name: value for name, value in attributes.items() if name not in own or value in known}

"""What do policies get to know of a call, and what of it is written down?

The same flat dict decides and goes into the Begin fact, so that another policy can be tried on the call later. Facts are for
everybody who verifies them: what a caller has said in its own words is written down only when a manifest or a rule says the
same word; else the call counts as one that lacks the attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from access.policies.atoms import tests_of
from toolhub.kernel.ids import encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from access.policies.compiler import CompiledPolicy
    from invocations.calls import Call
    from registry.compiled import CompiledVersion
    from registry.standing import Standing

OWN_WORDS = ("model", "client_app")


def attributes_of(
    call: Call, version: CompiledVersion, standing: Standing, *, size: int, consent: bool
) -> dict[str, Any]:
    """By access.policies.attributes. ``size``: bytes of the arguments; ``consent``: whether one fits the call."""
    envelope, models = call.envelope, version.manifest.models
    model = envelope.client.get("model", "")
    found = version.attributes | {
        "agent": encode("agt", standing.agent_id),
        "agent_name": standing.agent_name,
        "origin": str(call.origin),
        "dry_run": envelope.dry_run,
        "user_present": bool(envelope.user_id),
        "consent": consent,
        "bytes_in": size,
        "hour": standing.at.hour,
        "weekday": standing.at.isoweekday(),
        "trusted": standing.installed is not None and standing.installed.trusted,
        "signed": standing.installed is not None and bool(standing.installed.signed_by),
    }
    if standing.installed is not None and standing.installed.signed_by:
        found["signed_by"] = standing.installed.signed_by
    if model:
        found["model"] = model
    if model or not models:
        found["model_compatible"] = not models or model in models
    if app := envelope.client.get("app"):
        found["client_app"] = app
    return found


_words: dict[str, frozenset[Any]] = {}
MAX_DOCUMENTS = 4096


def words_of(layer: CompiledPolicy) -> frozenset[Any]:
    """What the rules of a policy compare a caller's own words with. Documents never change: found once by their digest."""
    if layer.digest not in _words:
        if len(_words) >= MAX_DOCUMENTS:
            _words.clear()
        tests = (test for rule in layer.rules for test in tests_of(rule.condition))
        asked = [test for test in tests if test.attribute in OWN_WORDS]
        _words[layer.digest] = frozenset(test.value for test in asked if test.ask == "equals").union(
            *(test.value for test in asked if test.ask == "in")
        )
    return _words[layer.digest]


def recorded(attributes: dict[str, Any], layers: Iterable[CompiledPolicy], models: Iterable[str]) -> dict[str, Any]:
    """The attributes as a fact may hold them."""
    own = [name for name in OWN_WORDS if name in attributes]
    if not own:
        return attributes
    known = frozenset(models).union(*(words_of(layer) for layer in layers))
    return {name: value for name, value in attributes.items() if name not in own or value in known}

"""Sent data: what of a request's data the provider of a model is sent, and what is masked before.

Masked is what a detector finds and the provider may not be sent, and what the policy's obligations with detectors say, which hold for
the request as for the answer. Where masking would not do, the call is refused. A person's consent, asked for by a policy, lets go what
the provider may not be sent else; no obligation is lifted by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from access.redaction import KINDS, Placeholders, Sweep, detector_kinds, masked_hit
from invocations.model_calls.request_data import sweep_fixed_texts, sweep_request
from invocations.model_calls.token_counts import list_media
from llm.messages import Text
from llm.problems import SensitiveBlocked
from llm.requests import ChatRequest
from registry.model_providers.data_classes import find_data_class, list_unsendable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from access.policies.compiler import CompiledPolicy
    from access.policies.verdict import Verdict
    from access.problems import PolicyDenied
    from invocations.model_calls.model_requests import ModelRequest
    from invocations.model_calls.request_data import RequestData
    from registry.model_providers.data_classes import Recipient
    from unitools.calls import ToolSpec

DATA_CLASSES, ALLOW = "data_classes", "allow_sensitive"  # attributes of policies
MASK, REDACT = "mask", "redact"
LET_GO = "Take these data out, choose a model whose provider may be sent them, or ask an operator to let this one be."


@dataclass(frozen=True, slots=True)
class SentData:
    """``classes``: of the data that the provider is sent. ``masked``: how often, by what detectors call it.

    ``by_consent``: classes that it is sent only because of the consent that the call goes ahead with.
    """

    classes: tuple[str, ...] = ()
    masked: Mapping[str, int] = field(default_factory=dict)
    by_consent: tuple[str, ...] = ()
    # Pictures, sounds and files that go as they are, to a provider that may not be sent all that detectors find.
    unseen: int = 0


def wants_sensitive(request: ModelRequest | None) -> bool:
    return isinstance(request, ChatRequest) and request.allow_sensitive


def find_rules_about(attribute: str, layers: Sequence[CompiledPolicy]) -> set[str]:
    return {rule.ref for layer in layers for rule in layer.rules if attribute in rule.asked}


def turn_into_sensitive(
    denial: PolicyDenied, verdict: Verdict, layers: Sequence[CompiledPolicy]
) -> SensitiveBlocked | None:
    """The refusal in the words of models, where a rule forbids a call because of the data in its request."""
    if find_rules_about(DATA_CLASSES, layers).isdisjoint(verdict.forbids):
        return None
    return SensitiveBlocked(denial.detail, remedy=f"{LET_GO} {denial.remedy}", details=denial.details)


def check_sensitive_allowed(verdict: Verdict, layers: Sequence[CompiledPolicy]) -> None:
    """Raise SensitiveBlocked unless a rule that asks about `allow_sensitive` wants a person's consent. That it is there is a rule of
    every call.
    """
    if verdict.consent is None or find_rules_about(ALLOW, layers).isdisjoint(verdict.consent.rules):
        raise SensitiveBlocked(
            "No policy says that sensitive data may be sent to this model, once a person agrees.",
            remedy="Ask without `allow_sensitive`, and they are masked; or ask somebody who drafts policies for a rule about "
            f"`{ALLOW}` with the effect consent, and then for the consent.",
        )


def prepare_sent_request(
    request: ModelRequest, data: RequestData, provider: Recipient, obligations: Sequence[dict[str, Any]]
) -> tuple[ModelRequest, SentData]:
    """The request as the provider may be sent it. ``allow_sensitive`` in it counts: whether it may, is decided before.

    Raises:
        SensitiveBlocked: masking would not do.
    """
    unsendable = list_unsendable(data.classes, provider)
    by_consent = unsendable if wants_sensitive(request) else []
    withheld = set(unsendable) - set(by_consent)
    _check_declared(data, withheld)
    actions = {kind: REDACT for kind in KINDS if find_data_class(kind) in withheld}
    obliged = [each for each in obligations if "detector" in each]
    for each in sorted(obliged, key=lambda one: one["action"]):  # mask, then redact: the stricter has the last word
        actions |= dict.fromkeys(detector_kinds(each), each["action"])
    _check_files(request, obliged)
    sent, masked = mask_request(request, data.own_tools, actions) if actions else (request, {})
    left = frozenset(map(find_data_class, data.found.keys() - actions.keys())).union(*data.declared.values())
    looks = bool(list_unsendable(map(find_data_class, KINDS), provider)) and not wants_sensitive(request)
    return sent, SentData(
        tuple(sorted(left)),
        masked,
        tuple(each for each in by_consent if each in left),
        len(list_media(request)) if looks else 0,
    )


def mask_request(
    request: ModelRequest, own_tools: Sequence[ToolSpec], actions: Mapping[str, str]
) -> tuple[ModelRequest, dict[str, int]]:
    """``actions``: mask or redact, by what detectors call it. One value has one mask wherever it stands."""
    placeholders = Placeholders()

    def change(text: str, kind: str) -> str:
        return masked_hit(text, kind) if actions[kind] == MASK else placeholders.name_hit(text, kind)

    kinds = tuple(kind for kind in KINDS if kind in actions)
    if places := sweep_fixed_texts(request, own_tools, Sweep(kinds, change)):
        raise build_sensitive_blocked(
            f"{places[0]} holds data that may not go to this model, and would mean something else without them.", places
        )
    sweep = Sweep(kinds, change)
    changed = sweep_request(request, sweep)
    return (changed, sweep.counts) if sweep.counts else (request, {})


def _check_declared(data: RequestData, withheld: Iterable[str]) -> None:
    """No detector knows what of a tool's result is of a class that its manifest names: all of it, as far as anybody can say."""
    over = {place: sorted(classes & set(withheld)) for place, classes in data.declared.items()}
    if places := [place for place, classes in over.items() if classes]:
        named = sorted({each for classes in over.values() for each in classes})
        raise build_sensitive_blocked(
            f"{places[0]} holds what a tool gave that handles {', '.join(named)} data, which this model's provider may not be sent.",
            places,
            data_classes=named,
        )


def _check_files(request: ModelRequest, obliged: Sequence[dict[str, Any]]) -> None:
    """As with artifacts: what no detector can look into does not pass where the policy wants everything looked into."""
    if not obliged or not isinstance(request, ChatRequest):
        return
    for place, message in enumerate(request.messages):
        for at, segment in enumerate(message.segments):
            if not isinstance(segment, Text):
                pointer = f"/messages/{place}/segments/{at}"
                raise build_sensitive_blocked(
                    f"The policy wants personal data masked, and {pointer} cannot be looked into.", [pointer]
                )


def build_sensitive_blocked(sentence: str, places: Sequence[str], **details: Any) -> SensitiveBlocked:
    findings = [{"pointer": place, "message": "It holds data that may not go to this model."} for place in places]
    return SensitiveBlocked(sentence, remedy=LET_GO, details={"findings": findings[:20], **details})


def describe_masked(sent: SentData | None) -> list[str]:
    """For the warnings of an answer: counts, and nothing of what was masked."""
    if sent is None:
        return []
    said = []
    if sent.masked:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(sent.masked.items()))
        said.append(f"Before the model was asked, sensitive data in the request were masked: {counts}.")
    if sent.unseen:
        said.append(
            f"Nothing can be masked in pictures, sounds and files: {sent.unseen} of them went to the model as they are."
        )
    return said

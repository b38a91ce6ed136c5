"""Leaves of begins: that a call was made, and what was decided about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from evidence.kinds import BEGINS
from evidence.leaves.base import Commitment, LeafData, LeafPart, ListDigest, SearchTerm, leaf_data, leaf_part

if TYPE_CHECKING:
    from collections.abc import Iterable


@leaf_part
class InputCommitment(Commitment):
    """What binds the arguments, the envelope and the seed of a call."""

    shape: Annotated[Any, "names the schema knows, types and lengths"]


@leaf_part
class ChainPlace(LeafPart):
    """Where in a chain a call stands."""

    id: Annotated[str, "of the chain", SearchTerm("chain")]
    role: Annotated[str, "`step` or `compensation`"]
    step: Annotated[str, "its name in the plan"]
    try_: Annotated[int, "the number of the attempt at it"]


@leaf_part
class AgentRunPlace(LeafPart):
    """Where in an agent run a call stands."""

    id: Annotated[str, "of the run", SearchTerm("run")]
    turn: Annotated[int, "how often its model was asked up to there"]
    position: Annotated[int, "among the steps of the run, from 0"]
    try_: Annotated[int, "the number of the attempt at it"]


@leaf_part
class ToolDigests(LeafPart):
    """Which code it is."""

    name: Annotated[str, "of the tool"]
    version: Annotated[str, "of the tool"]
    manifest: Annotated[str, "digest of the manifest"]
    build: Annotated[str, "digest of the code"]


@leaf_part
class CalledTool(ToolDigests):
    """Which code it is, and how the tenant has set it up."""

    installation: Annotated[str, "of the tenant"]
    config: Annotated[str, "digest of its configuration"]


@leaf_part
class PolicyReference(LeafPart):
    """The policies that decided."""

    version: Annotated[str, "labels of the versions in force", SearchTerm("policy")]
    hash: Annotated[str, "of all rules in force"]


@leaf_part
class PolicyDecision(LeafPart):
    """What the policies said."""

    allowed: Annotated[bool, "whether every layer permits the call"]
    consent: Annotated[bool, "whether a person must consent"]
    by_manifest: Annotated[bool, "whether the tool demands that consent itself"]
    rules: Annotated[list[str], "that contributed"]
    degraded: Annotated[
        dict[str, Any] | None,
        "of a call of a model, what less it gets: which model alone answers, which tools it is shown, and by which rules",
    ] = None


@leaf_part
class ConsentBinding(LeafPart):
    """What a consent is good for."""

    mode: Annotated[str, "`once`, `period` or `standing`"]
    hash: Annotated[str, "of mode, versions, person, arguments, policy and end"]


@leaf_part
class SentPrefix(LeafPart):
    """What the tenant says to its models before all else."""

    version: Annotated[int, "of the model prefix"]
    digest: Annotated[str, "of its text"]
    tokens: Annotated[int, "as estimated; they are in `input_tokens`"]


@leaf_part
class AskedModel(LeafPart):
    """Which model a call asks, and for how much."""

    provider: Annotated[str, "its name in the tenant"]
    name: Annotated[str, "the provider's own name of the model"]
    operation: Annotated[str, "`chat`, `embed` or `rerank`"]
    input_tokens: Annotated[int, "of the request, as estimated"]
    output_tokens: Annotated[int, "that may be answered at most"]
    price: Annotated[str | None, "version of the price that it was reserved at"] = None
    tools: Annotated[ListDigest | None, "those that the model is shown: how many, and their digest"] = None
    prefix: Annotated[SentPrefix | None, "the model prefix that it was sent first"] = None
    fallbacks: Annotated[list[str] | None, "ids of the models that may answer in its place"] = None
    own_tools: Annotated[int | None, "how many of these the caller has described itself"] = None
    files: Annotated[
        ListDigest | None, "of the hub that are sent with it: how many, and a digest of ids and keyed hashes"
    ] = None
    pictures: Annotated[
        list[dict[str, Any]] | None,
        "that stood in the request itself: `content`, a keyed hash of the bytes; `media_type` and `bytes`, by these",
    ] = None
    data_classes: Annotated[list[str] | None, "classes of data that the provider is sent, as far as they are known"] = (
        None
    )
    masked: Annotated[dict[str, int] | None, "what was masked before: how often, by what detectors call it"] = None
    by_consent: Annotated[list[str] | None, "classes that it is sent only because of the consent of the call"] = None


@leaf_part
class ProposedBy(LeafPart):
    """Which answer of a model proposed a call; it was checked before the call was accepted."""

    invocation: Annotated[str, "the call of the model"]
    model: Annotated[str, "the model that gave the answer, by its id"]
    proposal: Annotated[str, "keyed hash of call id, tool and arguments: one of those in `model.proposed` of its End"]

    @staticmethod
    def list_derived_terms(data: dict[str, Any]) -> Iterable[tuple[str, str]]:
        """Both in one text: what its facts have in common with those that follow is one text for each name."""
        return [("proposed_by", f"{data.get('invocation', '')} {data.get('model', '')}".strip())]


@leaf_part
class ReservedBudget(LeafPart):
    """What an accepted call holds, until its End says what it took."""

    reserved: Annotated[dict[str, int], "how much is held, by dimension"]
    of: Annotated[list[str], "in which budgets"]


@leaf_part
class DecidedCall(LeafData):
    """What was decided about a call: at its Begin, and anew when it goes on after it was held."""

    policy: Annotated[PolicyReference | None, "versions of the policy and the hash of all rules in force"] = None
    profile: Annotated[str | None, "hash of what the run may reach, limits included"] = None
    level: Annotated[str | None, "the weakest isolation that is enough"] = None
    grant: Annotated[str | None, "that the call rests on"] = None
    actors: Annotated[list[Any] | None, "the chain of agents that delegated the grant"] = None
    consent: Annotated[str | None, "that the call rests on", SearchTerm("consent")] = None
    account: Annotated[
        str | None, "the person's own account by which a server elsewhere is asked, or that the call waits for"
    ] = None
    decision_input: Annotated[dict[str, Any] | None, "what the policy was asked"] = None
    decision: Annotated[PolicyDecision | None, "what it said, rule by rule"] = None
    budget: Annotated[ReservedBudget | None, "what the call holds until its End"] = None

    @staticmethod
    def list_derived_terms(data: dict[str, Any]) -> Iterable[tuple[str, str]]:
        return [("verdict", find_verdict(data.get("decision"), refused_at=data.get("refused_at")))]


def find_verdict(decision: Any, *, refused_at: Any) -> str:
    """The verdict by which a call is found; one that was refused before anybody asked the policies is denied, too."""
    if not isinstance(decision, dict) or "allowed" not in decision:
        return "denied" if refused_at else ""
    if not decision["allowed"]:
        return "denied"
    return "consent" if decision.get("consent") else "allowed"


@leaf_part
class CallingConnection(LeafPart):
    """By which program a call was made, and who has let it."""

    id: Annotated[str, "of the connection"]
    client: Annotated[str, "id of the program"]
    member: Annotated[str, "who has let it act as the agent"]


@leaf_data(*BEGINS)
class Begin(DecidedCall):
    """That a call was made, and what was decided about it."""

    origin: Annotated[str, "`api`, `llm` (a model proposed it), `mcp` or `system`"]
    dry_run: Annotated[bool, "whether nothing was to be changed"]
    request_id: Annotated[str, "the caller's own name of the call, hashed"]
    on_behalf_of: Annotated[str, "`type` of the envelope's actor"]
    input: Annotated[
        InputCommitment,
        "commitment to arguments, envelope and seed; `shape`: names the schema knows, types and lengths",
    ]
    user: Annotated[
        str | None,
        "whom the call is made for, hashed with that person's key: nobody can compute it once they are forgotten",
        SearchTerm("user"),
    ] = None
    connection: Annotated[
        CallingConnection | None, "for a call by a program that a person has let act as the agent"
    ] = None
    chain: Annotated[ChainPlace | None, "for a call of a chain"] = None
    agent_run: Annotated[AgentRunPlace | None, "for a call of an agent run"] = None
    model: Annotated[AskedModel | None, "for a call of a model"] = None
    caller_trace: Annotated[Any, "the trace that the caller named"] = None
    proposal: Annotated[str | None, "what the model called the call, hashed"] = None
    proposed_by: Annotated[ProposedBy | None, "the answer that proposed the call, where its caller named it"] = None
    tool: Annotated[CalledTool | None, "which code, and how the tenant has set it up"] = None
    consent_binds: Annotated[ConsentBinding | None, "what the consent is good for"] = None
    obligations: Annotated[str | None, "digest of what must be done to the output"] = None
    refused_at: Annotated[str | None, "the step that refused it"] = None
    callback: Annotated[str | None, "who is told of the end"] = None

"""Leaves of calls: Begin and End, and what happens to a call between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from evidence.kinds import BEGINS, ENDS, Kind
from evidence.leaves.base import Commitment, LeafData, LeafPart, ListDigest, SearchTerm, leaf_data, leaf_part

if TYPE_CHECKING:
    from collections.abc import Iterable

ANY_DATA_CLASS = "any"  # of personal data, in a search


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
class TokenCount(LeafPart):
    """What was used of a model."""

    input: Annotated[int, "tokens of the request"]
    output: Annotated[int, "tokens of the answer"]
    cached: Annotated[int | None, "those of the request that the provider had kept"] = None
    cache_written: Annotated[int | None, "those of the request that the provider keeps from now on"] = None


@leaf_part
class AnsweredModel(LeafPart):
    """What became of a call of a model, in figures."""

    provider: Annotated[str, "its name in the tenant"]
    name: Annotated[str, "the provider's own name of the model that was asked"]
    operation: Annotated[str, "`chat`, `embed` or `rerank`"]
    requests: Annotated[int, "how many the provider was sent"]
    settled_by: Annotated[
        str, "what was counted: `provider`: its usage; `estimate`: that of the hub; `nothing`: no request was answered"
    ]
    answered_by: Annotated[str | None, "the model that answered, as the provider names it"] = None
    finish: Annotated[str | None, "why the answer ended"] = None
    reported: Annotated[TokenCount | None, "what the provider reported"] = None
    estimated: Annotated[TokenCount | None, "what the hub estimated"] = None
    price: Annotated[str | None, "version of the price"] = None
    cost_micros: Annotated[int | None, "what it cost, in millionths of the currency; absent: there is no price"] = None
    proposals: Annotated[int | None, "how many calls the model proposed"] = None
    proposed: Annotated[
        list[str] | None,
        "keyed hashes of call id, tool and arguments of the first 64 that can be made: a Begin names one in `proposed_by`",
    ] = None
    first_token_ms: Annotated[int | None, "from the request to the first piece of the answer"] = None
    stood_in: Annotated[str | None, "id of the model that has answered in the place of the one that was asked"] = None
    attempts: Annotated[
        list[dict[str, Any]] | None,
        "where more than one model was asked: the id of each, its requests, why it failed, and what it took all the same",
    ] = None


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


@leaf_data(Kind.INVOCATION_HELD)
class HeldCall(LeafData):
    """That a call waits for a person."""

    consent: Annotated[str, "that it waits for; empty: for none", SearchTerm("consent")]
    account: Annotated[str | None, "of a person at a server elsewhere, that it waits for"] = None
    until: Annotated[str, "when it stops waiting"]


@leaf_data(Kind.INVOCATION_RESUMED)
class ResumedCall(DecidedCall):
    """That a held call goes on, and what was decided anew."""


@leaf_data(Kind.INVOCATION_REPLAYED)
class RepeatedAnswer(LeafData):
    """That a caller sent the same idempotency key again and got the first answer."""

    state: Annotated[str, "of the call at that time"]


@leaf_data(Kind.INVOCATION_CANCEL_ASKED, Kind.INVOCATION_RETRIED)
class CallAttempt(LeafData):
    """Which run of a call it is about."""

    attempt: Annotated[int, "number of the run"]


@leaf_data(Kind.REQUEST_REJECTED, Kind.INVOCATION_PREFLIGHTED)
class RequestTally(LeafData):
    """Requests that made no call, counted by the minute."""

    calls: Annotated[int, "how many"]
    from_: Annotated[str, "begin of the minute"]
    until: Annotated[str, "its end"]


@leaf_part
class LineRange(LeafPart):
    """Which lines of a run's log are in a segment."""

    count: Annotated[int, "how many"]
    first: Annotated[int | None, "number of the first"] = None
    last: Annotated[int | None, "number of the last"] = None


@leaf_data(Kind.INVOCATION_SEGMENT)
class Segment(LeafData):
    """What a long run has logged since the segment before."""

    number: Annotated[int, "from 1"]
    attempt: Annotated[int, "number of the run"]
    after: Annotated[str, "leaf hash of the fact before it: the Begin, or a segment"]
    said: Annotated[Commitment, "commitment to the lines"]
    lines: Annotated[LineRange, "which lines"]
    thousandths_done: Annotated[int | None, "progress that the tool reported"] = None


@leaf_part
class HashedOutput(LeafPart):
    """What binds an output that is not kept."""

    commit: Annotated[str, "keyed hash"]
    bytes: Annotated[int, "how many"]


@leaf_part
class SpentBudget(LeafPart):
    """What is taken of the budgets that the Begin names."""

    spent: Annotated[dict[str, int], "what was measured; the rest counts as reserved"]
    released: Annotated[bool | None, "nothing ran, nothing counts"] = None
    not_of: Annotated[list[str] | None, "budgets of models that took nothing: nothing is taken of them"] = None
    parts: Annotated[
        dict[str, dict[str, int]] | None, "budgets that only some of the models count against: what these took"
    ] = None


@leaf_part
class RunReport(LeafPart):
    """How the tool ran."""

    status: Annotated[str, "how the run ended"]
    image: Annotated[str, "content digest"]
    clock: Annotated[str, "the time that the tool was told"]
    box: Annotated[str, "in which it ran"]
    level: Annotated[str, "isolation that it had"]
    clean: Annotated[bool, "whether nothing of it was left"]
    duration_ms: Annotated[int, "how long it took"]
    cpu_ms: Annotated[int | None, "processor time"]
    max_rss_bytes: Annotated[int | None, "most memory at once"]
    result_bytes: Annotated[int | None, "size of what it returned"]
    cpu_exact: Annotated[bool | None, "false: it may have taken more"] = None
    waited_ms: Annotated[
        int | None,
        "how long before the call its server had been started, whose time and chance are of then; absent: with it",
    ] = None


@leaf_part
class SentFileSummary(LeafPart):
    """Artifacts and files that a request to a service carried."""

    count: Annotated[int, "how many"]
    bytes: Annotated[int, "in all"]
    types: Annotated[list[str], "the first half of their media types"]
    hash: Annotated[str, "of ids and keyed hashes"]


@leaf_part
class AskedService(LeafPart):
    """The operation of a service, or the server somewhere else, that answered a call, as the egress gate saw it."""

    method: Annotated[str, "of the request"]
    host: Annotated[str, "that was asked"]
    path: Annotated[str, "the template of the path, below the server's own; what stood in it is in the arguments"]
    left: Annotated[bool, "whether a byte of the request may have left; false: nobody was asked for anything"]
    complete: Annotated[bool, "whether the whole of the answer came"]
    attempts: Annotated[int, "how often it was tried; after one that left, none is"]
    bytes_out: Annotated[int, "of the request, before TLS"]
    bytes_in: Annotated[int, "of the answer's body"]
    status: Annotated[int | None, "that the service answered"] = None
    credentials: Annotated[list[str] | None, "names of the secrets that the gate added"] = None
    unlike_document: Annotated[
        bool | None, "true: the answer does not match the schema of its document, and was passed on"
    ] = None
    asks: Annotated[str | None, "the method of MCP, where a server of others was asked"] = None
    sent_files: Annotated[SentFileSummary | None, "that the request carried, where a byte of it may have left"] = None


@leaf_part
class ArtifactSummary(LeafPart):
    """What a call leaves for its caller."""

    count: Annotated[int, "how many"]
    bytes: Annotated[int, "in all"]
    types: Annotated[list[str], "the first half of their media types"]
    hash: Annotated[str, "of ids and keyed hashes"]


@leaf_part
class WrittenFiles(LeafPart):
    """Files of the tenant that a run has written."""

    count: Annotated[int, "how many"]
    bytes: Annotated[int, "in all"]
    hash: Annotated[str, "of ids and keyed hashes"]


@leaf_part
class FileChanges(LeafPart):
    """What a run did with files of the tenant."""

    read: Annotated[int, "how many it was given"]
    written: Annotated[WrittenFiles, "those that it left"]
    removed: Annotated[int, "how many it took away"]
    not_taken: Annotated[int, "how many changes were not kept"]


@leaf_part
class KeptToolFiles(LeafPart):
    """What became of the files that tools keep from call to call."""

    group: Annotated[str, "the tools that share them"]
    scope: Annotated[str, "whose they are: `tenant`, `agent` or `person`"]
    before: Annotated[str, "keyed hash of what the run was given; empty: nothing"]
    after: Annotated[str, "keyed hash of what is kept now; empty: nothing"]
    count: Annotated[int, "how many files are kept now"]
    bytes: Annotated[int, "in all"]
    kept: Annotated[bool, "false: the run changed nothing, since it did not succeed, was a trial or only reads"]


@leaf_data(*ENDS)
class End(LeafData):
    """How a call ended, and what came of it."""

    state: Annotated[str, "the final state"]
    attempt: Annotated[int, "which run it was; 0: none"]
    dry_run: Annotated[bool, "as in the Begin"]
    tool: Annotated[ToolDigests | None, "what ran"] = None
    profile: Annotated[str | None, "as in the Begin; the last decision's"] = None
    output: Annotated[
        Commitment | None, "commitment to what the caller gets, after obligations, with plan, warnings and artifacts"
    ] = None
    raw_output: Annotated[HashedOutput | None, "what the tool returned, where obligations or repairs changed it"] = None
    error: Annotated[Commitment | None, "commitment to the problem's text and details"] = None
    logs: Annotated[Commitment | None, "commitment to what the tool said, reached for and connected to"] = None
    sources: Annotated[
        list[dict[str, str]] | None,
        "rulesets and tables that the tool named, with version and hash; of what is no plain word, keyed hashes",
    ] = None
    all_sources: Annotated[ListDigest | None, "of very many: how many, and a keyed hash of all"] = None
    obligations: Annotated[
        list[dict[str, Any]] | None, "what was done to the output: kinds and places, never values"
    ] = None
    all_obligations: Annotated[ListDigest | None, "of very many: how many, and their digest"] = None
    repairs: Annotated[list[dict[str, Any]] | None, "what was changed so that the output fits its schema"] = None
    all_repairs: Annotated[ListDigest | None, "of very many: how many, and their digest"] = None
    budget: Annotated[SpentBudget | None, "what is taken of the budgets that the Begin names"] = None
    run: Annotated[RunReport | None, "how the tool ran"] = None
    model: Annotated[AnsweredModel | None, "of a call of a model"] = None
    blocked: Annotated[list[str] | None, "kinds of what it reached for and was refused"] = None
    connections: Annotated[
        list[dict[str, Any]] | None,
        "attempts through the gate that a rule names, with what became of them; where else it wanted to go is sealed",
    ] = None
    all_connections: Annotated[ListDigest | None, "of very many: how many, and their digest"] = None
    connections_known: Annotated[bool | None, "false: the gate has not answered, so there may have been some"] = None
    connections_elsewhere: Annotated[int | None, "how many attempts no rule names"] = None
    service: Annotated[AskedService | None, "the operation of a service that answered"] = None
    account: Annotated[str | None, "the person's own account by which the server elsewhere was asked"] = None
    artifacts: Annotated[ArtifactSummary | None, "what the call leaves for its caller"] = None
    files: Annotated[FileChanges | None, "what the run did with files of the tenant"] = None
    tool_files: Annotated[KeptToolFiles | None, "what became of the files that the tool keeps"] = None

    @staticmethod
    def list_derived_terms(data: dict[str, Any]) -> Iterable[tuple[str, str]]:
        return [("pii", each) for each in find_data_classes(data.get("obligations"))]


def find_data_classes(obligations: Any) -> set[str]:
    """Which personal data detectors found in a result."""
    if not isinstance(obligations, list):
        return set()
    found = {each.get("detector", "") for each in obligations if isinstance(each, dict) and each.get("count")} - {""}
    return found | {ANY_DATA_CLASS} if found else set()

"""Leaves of ends: how a call ended, and what it took and left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from evidence.kinds import ENDS
from evidence.leaves.base import Commitment, LeafData, LeafPart, ListDigest, leaf_data, leaf_part
from evidence.leaves.call_begins import ToolDigests  # noqa: TC001  the types of fields are read when the page is made

if TYPE_CHECKING:
    from collections.abc import Iterable

ANY_DATA_CLASS = "any"  # of personal data, in a search


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

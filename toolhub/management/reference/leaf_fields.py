"""Leaf fields: what the fields of leaves mean. A test holds that each field of a Begin or End is here."""

from __future__ import annotations

FORMS = (
    "`commit`: SHA-256(salt ‖ bytes) of a sealed value; `alg` says which bytes: `sha256-jcs` (canonical JSON) or, for what I-JSON "
    "has not (integers beyond 2^53, for one), `sha256-raw` (compact sorted JSON). `hmac-sha256:…`: keyed with the key of the "
    "person whom the call is made for; equal texts can be told while that person is known, and by nobody once they are erased. "
    "`sha256:…`: of what is no personal data."
)
VERSIONS = (
    (
        "1",
        "as 2, but reasons, purposes and notes in the clear; `request_id` and `proposal` as they were sent; no `level`, "
        "`consent_binds`, `budget`, `error`, `logs`",
    ),
    ("2", "what people write is in `words`; what a caller or a tool names by itself is hashed"),
)
ERASURE = {
    "concerns": "of the asking: how many of what there was, by name",
    "removed": "of the end: how many of what went, by name",
    "asked_by": "of the end: who asked",
    "names_words": "texts of facts that it takes are named, each by a `words.erased`; without it, as of hubs before, they are not",
    "count": "of `words.erased`: how many texts of facts went",
    "snapshots": "of `words.erased`: their ids",
}
EVERY = {
    "v": "version of the leaf's shape",
    "id": "of the fact",
    "kind": "see above",
    "at": "when it happened, by the clock of the process",
    "tenant": "whose log it is in",
    "subject": "what it is about",
    "actor": "`kind` and `id` of who did it; `key` of an agent, or `issuer` and `token` (a digest) of its identity provider; "
    "`via` is `command` when somebody with a shell did it in a person's name",
    "invocation": "the call that it belongs to",
    "tool": "by name",
    "outcome": "how it went; of an End the final state",
    "reason": "code of the problem",
    "trace": "id of the trace (W3C)",
    "data": "what the kind says beside that",
}
ANY_DATA = {
    "words": "what a person wrote: `of` names the texts (reason, purpose, note), `commit` binds them, `snapshot` holds them sealed",
}
BEGIN = {
    "origin": "`api`, `llm` (a model proposed it), `mcp` or `system`",
    "dry_run": "whether nothing was to be changed",
    "request_id": "the caller's own name of the call, hashed",
    "on_behalf_of": "`type` of the envelope's actor",
    "user": "whom the call is made for, hashed with that person's key: nobody can compute it once they are forgotten",
    "input": "commitment to arguments, envelope and seed; `shape`: names the schema knows, types and lengths",
    "chain": "chain, step, role and try, for a call of a chain",
    "caller_trace": "the trace that the caller named",
    "proposal": "what the model called the call, hashed",
    "tool": "name, version, `manifest` and `build` digests, installation and the digest of its `config`",
    "policy": "versions of the policy and the hash of all rules in force",
    "profile": "hash of what the run may reach, limits included",
    "level": "the weakest isolation that is enough",
    "grant": "that the call rests on",
    "actors": "the chain of agents that handed the grant on",
    "consent": "that the call rests on",
    "consent_binds": "its `mode`, and the `hash` of mode, versions, person, arguments, policy and end",
    "decision_input": "what the policy was asked",
    "decision": "what it said, rule by rule",
    "obligations": "digest of what must be done to the output",
    "refused_at": "the step that refused it",
    "budget": "`reserved`: how much is held, by dimension; `of`: in which budgets",
    "callback": "who is told of the end",
}
END = {
    "state": "the final state",
    "attempt": "which run it was; 0: none",
    "dry_run": "as in the Begin",
    "tool": "what ran: name, version, `manifest`, `build`",
    "profile": "as in the Begin; the last decision's",
    "output": "commitment to what the caller gets, after obligations, with plan, warnings and artifacts",
    "raw_output": "keyed hash of what the tool returned, where obligations or repairs changed it",
    "error": "commitment to the problem's text and details",
    "logs": "commitment to what the tool said, reached for and connected to",
    "sources": "rulesets and tables that the tool named, with version and hash; of what is no plain word, keyed hashes",
    "all_sources": "of very many: how many, and a keyed hash of all",
    "obligations": "what was done to the output: kinds and places, never values",
    "all_obligations": "of very many: how many, and their digest",
    "repairs": "what was changed so that the output fits its schema",
    "all_repairs": "of very many: how many, and their digest",
    "budget": "`spent`: what was measured; the rest counts as reserved. `released`: nothing ran, nothing counts",
    "run": "status, `image` (content digest), box, level that it had, clean, duration_ms, cpu_ms, max_rss_bytes, result_bytes, clock",
    "blocked": "kinds of what it reached for and was refused",
    "connections": "attempts through the gate that a rule names, with what became of them; where else it wanted to go is sealed",
    "all_connections": "of very many: how many, and their digest",
    "connections_known": "false: the gate has not answered, so there may have been some",
    "connections_elsewhere": "how many attempts no rule names",
    "artifacts": "number, bytes, types and a digest of ids and keyed hashes",
    "files": "how many were read, written, removed and not taken, with a digest of what was written",
}

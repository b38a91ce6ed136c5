"""Leaves: what facts of each kind say, field by field, in a type for each kind that says anything of its own.

Services fill a type in, :func:`evidence.services.record` writes it, and whoever reads facts (search, integrity, replays, the
simulation of policies, pages) reads them in it; docs/reference/evidence-kinds.md is made from the types. All of them lie here and
not with the nouns that write them: facts are read in lower layers than they are written in (search and the simulation of policies
read the Begin of a call), and what is in a leaf stays verifiable for ever, whatever becomes of the noun.
"""

from evidence.leaves import (
    agent_runs,
    agents,
    call_begins,
    call_ends,
    calls,
    chains,
    connections,
    controls,
    custody,
    deliveries,
    files,
    grants,
    hub,
    imports,
    models,
    people,
    playgrounds,
    reasons,
    replays,
    server_accounts,
    tools,
)
from evidence.leaves.base import (
    ABSENT,
    FORMS,
    LEAF_TYPES,
    LEAF_VERSION,
    VERSIONS,
    Actor,
    Commitment,
    Leaf,
    LeafData,
    find_leaf_type,
)

__all__ = [
    "ABSENT",
    "FORMS",
    "LEAF_TYPES",
    "LEAF_VERSION",
    "VERSIONS",
    "Actor",
    "Commitment",
    "Leaf",
    "LeafData",
    "agent_runs",
    "agents",
    "call_begins",
    "call_ends",
    "calls",
    "chains",
    "connections",
    "controls",
    "custody",
    "deliveries",
    "files",
    "find_leaf_type",
    "grants",
    "hub",
    "imports",
    "models",
    "people",
    "playgrounds",
    "reasons",
    "replays",
    "server_accounts",
    "tools",
]

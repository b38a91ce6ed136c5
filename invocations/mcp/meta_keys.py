"""Meta keys: names of the hub's own in `_meta`, where MCP lets both sides say more than the protocol knows.

They stand apart from what reads and writes them, which needs the SDK: a page that only shows such a request does without it.
"""

ENVELOPE = "toolhub/envelope"  # around the arguments of a `tools/call`
CALL, EVIDENCE, TTL = "toolhub/call", "toolhub/evidence", "toolhub/ttl_seconds"  # in the answer
TOOL_ID = "toolhub/tool"  # of a tool in a list, whose name there may be another
HALTED = "toolhub/halted"  # why a list is empty

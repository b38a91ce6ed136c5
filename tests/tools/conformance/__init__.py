"""Tools that the official conformance suite of MCP calls, as real tools of the hub."""

"""Server accounts: persons' own accounts at MCP servers elsewhere, by which calls for them are made."""

"""Delegations: grants that an agent hands on to another agent, never wider than its own."""

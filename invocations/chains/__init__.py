"""Chains: what may be done with a plan of several calls. See ``plan`` for its form and ``orchestration`` for how it goes on."""

"""Agents: who acts for a tenant, and the API keys they hold."""

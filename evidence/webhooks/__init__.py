"""Webhooks: how outgoing messages are signed, when they are tried again, and how secrets overlap."""

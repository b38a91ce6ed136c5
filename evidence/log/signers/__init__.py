"""Signers: where the keys that sign the logs are: in a file, in a token, in a transit engine. :mod:`evidence.log.signer` chooses."""

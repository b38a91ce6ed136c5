"""Trials: a version under review, run with arguments that its reviewer has written, before anybody answers for it."""

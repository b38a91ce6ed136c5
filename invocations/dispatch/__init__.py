"""Dispatch: all calls that one response of a model holds, made and answered in its order."""

"""Observability: logs, traces and metrics of a process, and who hears of errors that nothing maps."""

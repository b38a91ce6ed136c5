"""Acceptance, the second stage of a call: its row, its sealed input and its Begin."""

"""Consents: who asked, who decided, what for."""

"""Anthropic's Messages, served."""

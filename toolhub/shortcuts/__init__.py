"""Shortcuts: keys that move somebody about the console; none changes data, and single ones can be switched off (WCAG 2.1.4)."""

"""Version: which version of toolhub this is.

Manifests may ask for a range of them. ``pyproject.toml`` says the same (a test holds both together); a checkout is not
installed, so the package metadata could not be asked.
"""

HUB_VERSION = "0.1.0"

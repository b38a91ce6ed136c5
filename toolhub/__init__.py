"""The roof: settings, addresses and entry points. Its floor is :mod:`toolhub.kernel`."""

"""The hub put together: settings, addresses, entry points. Whatever everyone shares is in :mod:`kernel`."""

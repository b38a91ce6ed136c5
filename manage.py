#!/usr/bin/env python
"""Django's command line for this hub."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
    from django.core.management import execute_from_command_line  # noqa: PLC0415  only after the settings are named

    import toolhub.celery  # noqa: F401, PLC0415  commands may send messages

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

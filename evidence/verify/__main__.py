"""`python -m evidence.verify` and `python -m toolhub_verify`: the command where no script is installed."""

import sys

from .command import main

sys.exit(main())

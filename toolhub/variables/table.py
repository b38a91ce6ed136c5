"""The table that all declarations stand in, read from the environment and from ``.env``."""

from __future__ import annotations

import os
from pathlib import Path

from kernel.dotenv import load_dotenv
from kernel.variables import Variables

BASE_DIR = Path(__file__).resolve().parents[2]
VARIABLES = Variables(os.environ)
try:
    load_dotenv(BASE_DIR)
except ValueError as error:
    VARIABLES.mistakes.append(str(error))

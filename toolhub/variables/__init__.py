"""The table of settings: every TOOLHUB_… name of the environment, declared once.

``toolhub/settings.py`` takes the values; ``manage.py build_docs`` writes docs/reference/settings.md and dotenv-sample from the rows;
a name of the environment that is no row is said when a process starts, and by ``manage.py doctor``. A new setting is one more
declaration in a module of this package. Own types and not a library's: what starts a checkout reads them before anything is
installed, and the page needs more of a setting (who reads it, its unit) than libraries keep.
"""

from toolhub.variables.evidence import *  # noqa: F403
from toolhub.variables.hub import *  # noqa: F403
from toolhub.variables.limits import *  # noqa: F403
from toolhub.variables.table import *  # noqa: F403
from toolhub.variables.tools import *  # noqa: F403

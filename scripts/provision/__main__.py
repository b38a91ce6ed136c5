"""python3 -m scripts.provision COMMAND"""

import sys

from scripts.provision import image

print(image.ensure())

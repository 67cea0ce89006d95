"""`python -m semel` is the real binary, not a Python process in front of it."""

import os
import sys

from ._binary import find, missing
from ._errors import SemelError

try:
    binary = find()
    try:
        os.execv(binary, ["semel", *sys.argv[1:]])
    except OSError as error:
        raise missing(f"{binary} cannot be started: {error.strerror}.") from error
except SemelError as error:
    sys.exit(f"semel: {error}")

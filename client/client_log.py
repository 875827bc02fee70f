"""Where librdkafka's own log lines go."""

import logging
from typing import Final

# Nowhere: it would write every refused connection to standard error, where our own sentence about it is read.
SILENT_LOGGER: Final = logging.getLogger("penstock.librdkafka")
SILENT_LOGGER.addHandler(logging.NullHandler())
SILENT_LOGGER.propagate = False

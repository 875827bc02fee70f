"""The suites there are, in the order in which they are run."""

from __future__ import annotations

from .kafka_python import KafkaPythonSuite
from .suite import Suite

SUITES: tuple[Suite, ...] = (KafkaPythonSuite(),)

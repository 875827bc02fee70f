"""How much random testing one run does: `PENSTOCK_TEST_PROFILE` is check (the default), soak or fuzz."""

import gc
import os
import signal
from typing import Any, Final

from hypothesis import HealthCheck, settings

# No deadline, and no verdict on slow examples: this machine may be busy. The blob is the line that replays a failure.
COMMON: Final[dict[str, Any]] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
    "print_blob": True,
}
settings.register_profile("check", **COMMON)
settings.register_profile("soak", **COMMON, max_examples=5_000)
settings.register_profile("fuzz", **COMMON, max_examples=50_000)
# As in the Makefile, for the processes that tests start: a program that finds modules beside itself fails in every run.
os.environ["PYTHONSAFEPATH"] = "1"
# A shell's background job is started with SIGINT ignored, and all processes inherit that: Ctrl-C would not end them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.load_profile(os.environ.get("PENSTOCK_TEST_PROFILE", "check"))


def pytest_collection_finish() -> None:
    """What was imported and collected stays: to look through it again and again is a sixth of all the time of tests."""
    gc.collect()
    gc.freeze()

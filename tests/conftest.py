"""How much random testing one run does: `PENSTOCK_TEST_PROFILE` is check (the default), soak or fuzz."""

import os

from hypothesis import settings

# No deadline: this machine may be busy. The blob is the line that replays a failure.
settings.register_profile("check", deadline=None, print_blob=True)
settings.register_profile("soak", deadline=None, print_blob=True, max_examples=5_000)
settings.register_profile("fuzz", deadline=None, print_blob=True, max_examples=50_000)
settings.load_profile(os.environ.get("PENSTOCK_TEST_PROFILE", "check"))

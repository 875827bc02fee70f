"""What all unit tests start from."""

import os
from contextlib import ExitStack

from penstock.chaos.mutants import known_bugs, quorum_mutants

# `PENSTOCK_TEST_MUTANT` names a known bug to run the tests with: those that are about it must fail. It is applied for
# the whole run, and before any test imports what it patches.
PATCHES = ExitStack()
NAME = os.environ.get("PENSTOCK_TEST_MUTANT")
if NAME in known_bugs.NAMES:
    PATCHES.enter_context(known_bugs.applied(NAME))
elif NAME is not None:
    PATCHES.enter_context(quorum_mutants.mutant_named(NAME).applied())

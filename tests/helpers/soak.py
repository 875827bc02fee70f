"""Which tests run in a soak alone: those of the pipeline take seconds each, and have five minutes together."""

from __future__ import annotations

import os
from typing import Final

import pytest

IS_SOAK: Final = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"

soak_only: Final = pytest.mark.skipif(not IS_SOAK, reason="in a soak only (PENSTOCK_TEST_PROFILE=soak)")

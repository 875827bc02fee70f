"""What a test does that needs a program this machine does not have."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

from penstock.chaos.faults.node_networks import NetworksUnavailableError, NodeNetworks
from penstock.client.cached_programs import TOXIPROXY, find_program


def unavailable(sentence: str) -> NoReturn:
    """Leave a test out for want of something on this machine; in CI, where everything is installed, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)


def need_toxiproxy() -> None:
    """For a test that breaks links of real nodes."""
    if find_program(TOXIPROXY) is None:
        unavailable(f"{TOXIPROXY} is not installed (`penstock chaos install-toxiproxy` builds it)")


def need_namespaces() -> None:
    """For a test whose nodes are in network namespaces."""
    try:
        with NodeNetworks(()):
            pass
    except NetworksUnavailableError as error:
        unavailable(str(error))

"""What a test does that needs a program this machine does not have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from penstock.chaos.faults.node_networks import NetworksUnavailableError, NodeNetworks
from penstock.chaos.faults.small_disk import Kind, SmallDisk, SmallDiskUnavailableError
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


@contextmanager
def small_disk(folder: Path, *, size_bytes: int, kind: Kind) -> Iterator[SmallDisk]:
    """For a test that needs one, mounted meanwhile."""
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(SmallDisk(folder, size_bytes=size_bytes, kind=kind))
        except SmallDiskUnavailableError as error:
            unavailable(f"{error}; run the tests as root on Linux")
        yield disk

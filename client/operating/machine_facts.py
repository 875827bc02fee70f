"""What a machine has that a node, the tests and the chaos tools need."""

from __future__ import annotations

import importlib.util
import os
import platform
import resource
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from ..cached_programs import TOXIPROXY, find_program

TOOLS: Final[Mapping[str, tuple[tuple[str, ...], str, str]]] = {
    "toxiproxy": (
        (TOXIPROXY,),
        "chaos tests of networks",
        "`penstock chaos install-toxiproxy` builds it, with Go from the machine or from PyPI",
    ),
    "nft": (("nft",), "`penstock chaos run --links namespaces`", "Debian: apt-get install nftables"),
    "iproute2": (("ip",), "`penstock chaos run --links namespaces`", "Debian: apt-get install iproute2"),
    "Chromium": (
        ("chromium", "chromium-browser", "google-chrome"),
        "tests of the page",
        "Debian: apt-get install chromium",
    ),
    "Java": (("java",), "`make conformance` and the comparison", "Debian: apt-get install default-jre-headless"),
    "kcat": (("kcat", "kafkacat"), "tests with other clients", "Debian: apt-get install kcat"),
}
"""By name: programs one of which is enough, what it is for, and how to get it."""


class MachineFacts(Struct, frozen=True, kw_only=True):
    """None is what this system does not say."""

    python_version: tuple[int, int, int]
    has_uvloop: bool
    open_files_max: int
    folder: str
    free_bytes: int
    total_bytes: int
    swap_used_bytes: int | None
    swappiness: int | None
    is_clock_synchronised: bool | None
    missing_tools: tuple[str, ...]


def machine_facts(folder: Path) -> MachineFacts:
    """Of this machine, with the disk of that folder. Raises OSError for a folder that is not there."""
    disk = shutil.disk_usage(folder)
    major, minor, patch = (int(part) for part in platform.python_version_tuple()[:3])
    return MachineFacts(
        python_version=(major, minor, patch),
        has_uvloop=importlib.util.find_spec("uvloop") is not None,
        open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        folder=str(folder),
        free_bytes=disk.free,
        total_bytes=disk.total,
        swap_used_bytes=_swap_used(_text("/proc/meminfo")),
        swappiness=_number(_text("/proc/sys/vm/swappiness")),
        is_clock_synchronised=_is_synchronised(),
        missing_tools=missing_tools(find_program),
    )


def missing_tools(which: Callable[[str], str | None]) -> tuple[str, ...]:
    return tuple(name for name, (programs, _, _) in TOOLS.items() if not any(map(which, programs)))


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text()
    except OSError:
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None


def _swap_used(meminfo: str | None) -> int | None:
    if meminfo is None:
        return None
    sizes = {name: rest.split() for name, _, rest in (line.partition(":") for line in meminfo.splitlines())}
    if "SwapTotal" not in sizes or "SwapFree" not in sizes:
        return None
    return (int(sizes["SwapTotal"][0]) - int(sizes["SwapFree"][0])) * 1024


def _is_synchronised() -> bool | None:
    # systemd-timesyncd leaves this file; chrony and ntpd have none that all may read.
    if os.path.exists("/run/systemd/timesync/synchronized"):
        return True
    return None

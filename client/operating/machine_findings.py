"""What is wrong with a machine for a node of Penstock, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..units import format_bytes
from .findings import FREE_LOW, Finding, Severity
from .machine_facts import TOOLS, MachineFacts

PYTHON_MIN: Final = (3, 11, 0)
OPEN_FILES_MIN: Final = 4096
"""A thousand partitions and a thousand connections."""
SWAP_USED_MAX: Final = 64 * 1024 * 1024
SWAPPINESS_MAX: Final = 10


def machine_findings(facts: MachineFacts) -> tuple[Finding, ...]:
    """All of them, the worst first."""
    return tuple(sorted(_findings(facts), key=lambda finding: finding.severity))


def _findings(facts: MachineFacts) -> Iterator[Finding]:
    version = ".".join(map(str, facts.python_version))
    if facts.python_version < PYTHON_MIN:
        yield Finding(
            kind="python-version",
            severity=Severity.OUTAGE,
            sentence=f"Python is {version}.",
            advice="Penstock needs 3.11 or newer.",
        )
    if not facts.has_uvloop:
        yield Finding(
            kind="no-uvloop",
            severity=Severity.ADVICE,
            sentence="uvloop is not installed: nodes use asyncio's own loop, which is slower.",
            advice="pip install uvloop",
        )
    if 0 <= facts.open_files_max < OPEN_FILES_MIN:
        yield Finding(
            kind="open-files",
            severity=Severity.DANGER,
            sentence=f"A process may open {facts.open_files_max:,} files: a node needs a few for each partition, "
            "and one for each connection.",
            advice=f"ulimit -n {OPEN_FILES_MIN}, or LimitNOFILE= in the unit of systemd.",
        )
    if facts.total_bytes and facts.free_bytes / facts.total_bytes < FREE_LOW:
        yield Finding(
            kind="disk-almost-full",
            severity=Severity.DANGER,
            sentence=f"The disk of {facts.folder} has {format_bytes(facts.free_bytes)} left of "
            f"{format_bytes(facts.total_bytes)}.",
            advice="Put log.dirs on a disk with room.",
        )
    if (facts.swap_used_bytes or 0) > SWAP_USED_MAX and (facts.swappiness or 0) > SWAPPINESS_MAX:
        yield Finding(
            kind="swap",
            severity=Severity.ADVICE,
            sentence=f"The machine uses {format_bytes(facts.swap_used_bytes or 0)} of swap: a node whose memory is "
            "swapped out pauses.",
            advice="sysctl vm.swappiness=1, or MemorySwapMax=0 in the unit of systemd.",
        )
    if facts.is_clock_synchronised is None:
        yield Finding(
            kind="clock",
            severity=Severity.ADVICE,
            sentence="Whether the clock is synchronised cannot be told here.",
            advice="`timedatectl` or `chronyc tracking` tells; `penstock doctor` compares the clocks of nodes.",
        )
    for name in facts.missing_tools:
        _, purpose, how = TOOLS[name]
        yield Finding(
            kind=f"no-{name.lower()}",
            severity=Severity.ADVICE,
            sentence=f"{name} is not installed, which is for {purpose}.",
            advice=how,
        )

"""Fault profiles: which kinds of faults and operations a run concentrates on (`penstock simulate --profile`).

Every fault, every operation of the operator and every zombie has a kind (`faults/kinds.py`), and every kind an ordinary
chance, beside the code that does it. A profile multiplies that chance. A directed form of a run is a profile with the
options that fix who takes part: a new one is a line of `PROFILES`. What mends (machines started, links healed,
processes resumed) has no kind: it happens in every profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ...faults.kinds import simulated_names

DAMAGE: Final = ("bit-flip", "lost-file")
"""`damage_faults.py`, in runs that scrub."""
# By what does them: `cluster_faults.py`, `disk_faults.py`, `tier_faults.py`, `ambushes.py`. A disk that is slow is of
# `delays.py`.
FAULTS: Final = (
    *(
        name
        for name in simulated_names("links", "processes", "clocks", "disks", "tiers")
        if name not in ("slow-disk", *DAMAGE)
    ),
    "client-pause",
    "ambush",
)
# `cluster_operator.py`, `directory_mover.py`, `deleter.py`.
OPERATIONS: Final = simulated_names("operations")
# `zombies.py`, and the clients that become some.
ZOMBIES: Final = ("client-freeze", "zombie-commit", "zombie-produce")
KINDS: Final = frozenset(
    simulated_names("links", "processes", "clocks", "disks", "tiers", "operations", "clients", "delays")
)


class Profile(Struct, frozen=True, kw_only=True):
    """`weights` by kind; kinds that are not named have `others`."""

    about: str
    weights: Mapping[str, float] = {}
    others: float = 0.0

    def __post_init__(self) -> None:
        unknown = self.weights.keys() - KINDS
        assert not unknown, f"no such kinds: {sorted(unknown)}"

    def weight(self, kind: str) -> float:
        """What the ordinary chance of this kind is multiplied by."""
        assert kind in KINDS, kind
        return self.weights.get(kind, self.others)


def _of(kinds: tuple[str, ...], weight: float) -> dict[str, float]:
    return dict.fromkeys(kinds, weight)


PROFILES: Final[Mapping[str, Profile]] = {
    "all": Profile(about="everything, at its ordinary chance", weights=_of(DAMAGE, 0), others=1),
    "faults": Profile(
        about="faults of machines, links and disks, without operator and zombies",
        weights={**_of(FAULTS, 1), "delete-records": 1},
    ),
    "crashes": Profile(
        about="processes killed, power lost, all crashed at once",
        weights={"kill": 2.5, "power-loss": 2.5, "kill:all": 4},
    ),
    "power": Profile(
        about="power lost while disks are slow, segments many and min.insync.replicas changes",
        weights={"power-loss": 8, "slow-disk": 2, "min-isr": 5, "segment-age": 5, "kill": 1, "kill:all": 1},
    ),
    "crash-of-all": Profile(about="all crashed at once, and nothing else", weights={"kill:all": 12}),
    "restarts": Profile(
        about="nodes stopped in good order, above all in the middle of requests",
        weights={"stop": 5, "stop-under-way": 5},
    ),
    "deletes": Profile(
        about="records deleted, near the log start above all, and all crashed at once",
        weights={"delete-records": 4, "delete-near-start": 6, "retention": 4, "segment-size": 2, "kill:all": 8,
                 "kill": 1, "partition:leaders": 2, "partition:link": 1},
    ),
    "links": Profile(
        about="links cut, slow and broken, requests held up",
        weights={"partition:link": 3, "partition": 3, "partition:leaders": 3, "slow-link": 3, "connection-resets": 2,
                 "ambush": 2},
    ),
    "disks": Profile(
        about="disks that fail, fail once, have no descriptors or come back empty",
        weights={"disk-error": 3, "failed-read": 4, "no-descriptors": 4, "emptied-disk": 2, "emptied-directory": 3,
                 "kill": 1, "stop": 1, "partition:leaders": 1},
    ),
    "tiers": Profile(
        about="the tier fails and is out, while nodes stop, die and lose disks, leaders change and partitions move",
        weights={"tier-outage": 3, "tier-error": 3, "slow-disk": 2, "kill": 1, "power-loss": 1, "stop": 1, "pause": 1,
                 "emptied-disk": 2, "emptied-directory": 1, "partition:leaders": 1, "partition:link": 1,
                 "reassignment": 2, "moved-leader": 4, "delete-records": 1, "delete-near-start": 1, "retention": 2},
    ),
    "damage": Profile(
        about="bits that flip and files that are lost, of one node at a time, while scrubbing looks for them",
        weights={**_of(DAMAGE, 1), "kill": 1, "stop": 1.5, "power-loss": 1, "segment-age": 2, "moved-leader": 3,
                 "reassignment": 1.5, "retention": 1, "delete-records": 0.5, "delete-near-start": 1,
                 "partition:leaders": 0.5, "pause": 0.5, "tier-outage": 2, "tier-error": 1},
    ),
    "pauses": Profile(
        about="nodes stopped by SIGSTOP, the active controller above all",
        weights={"pause": 3, "pause:controllers": 4},
    ),
    "operator": Profile(
        about="reassignments, elections and changed configurations, with crashes",
        weights={**_of(OPERATIONS, 2), "kill": 1, "power-loss": 1, "stop": 1, "partition:link": 1},
    ),
    "moves": Profile(
        about="logs that move between log directories while nodes crash, disks fail, leaders change and logs are cut",
        weights={"directory-move": 5, "move-throttle": 2, "kill": 2, "power-loss": 3, "kill:all": 3, "stop": 1,
                 "disk-error": 1.5, "failed-read": 1, "emptied-directory": 1.5, "slow-disk": 1.5,
                 "partition:leaders": 2, "partition:link": 1, "moved-leader": 3, "reassignment": 1, "segment-size": 2,
                 "segment-age": 1, "retention": 2, "delete-records": 1, "delete-near-start": 1, "late-answer": 1},
    ),
    "drains": Profile(
        about="brokers drained and undrained while nodes stop, die and are cut off, and partitions move",
        weights={"drain": 8, "undrain": 6, "reassignment": 1, "preferred-election": 1, "kill": 2, "stop": 2,
                 "stop-under-way": 1, "partition:leaders": 1, "partition:link": 1, "power-loss": 1,
                 "emptied-disk": 0.5},
    ),
    "zombies": Profile(
        about="clients that freeze, and go on when others have taken their places",
        weights={**_of(ZOMBIES, 4), "client-pause": 4, "kill": 1, "stop": 1, "partition:leaders": 1},
    ),
    "ambushes": Profile(about="requests between nodes held up while the world changes", weights={"ambush": 3}),
    "races": Profile(
        about="answers that come late, clients that do not wait for them, leaders that change meanwhile",
        weights={"late-answer": 3, "impatient-life": 4, "mixed-commits": 4, "moved-leader": 6,
                 "slow-link": 1, "stop": 1, "kill": 1, "partition:leaders": 1, "ambush": 1},
    ),
    "elections": Profile(
        about="leaders that change again before others know, with links and disks that are slow",
        weights={"moved-leader": 20, "slow-disk": 3, "slow-link": 2, "late-answer": 1, "partition:link": 1,
                 "partition:leaders": 0.5, "stop": 1, "kill": 1, "pause": 1, "ambush": 1, "impatient-life": 3},
    ),
    "quiet": Profile(about="nothing goes wrong"),
}  # fmt: skip

"""Replicas of many partitions on a set of brokers, and the single changes by which they become even.

Racks come first: no rack has two replicas more of a partition than another one that has a broker to spare (KIP-36). An
even number of replicas on each broker comes second, an even number of preferred leaders third.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...protocol.ids import NodeId


class Placements:
    """Assignments under change. `replicas` are all partitions, each with the preferred leader first.

    `racks` are the brokers that may take replicas. `elsewhere` counts replicas of other partitions on them, which
    decides between brokers that are equal otherwise.
    """

    def __init__(
        self,
        replicas: Iterable[Sequence[NodeId]],
        racks: Mapping[NodeId, str],
        elsewhere: Mapping[NodeId, int] | None = None,
    ) -> None:
        self.replicas = [list(one) for one in replicas]
        self._racks = racks
        self._rack_sizes = Counter(racks.values())
        self._elsewhere = elsewhere or {}
        self._places: dict[NodeId, dict[int, None]] = {broker_id: {} for broker_id in sorted(racks)}
        for place, one in enumerate(self.replicas):
            for replica in one:
                self._places.setdefault(replica, {})[place] = None
        self._led = Counter(one[0] for one in self.replicas)

    def replace_others(self, place: int) -> None:
        """Give each replica of a partition that is on no broker of the set to one of them, in the same position."""
        for replica in list(self.replicas[place]):
            if replica not in self._racks:
                self._move(place, replica, self._best(place, replica))

    def spread_over_racks(self, place: int) -> None:
        """Move replicas of a partition to racks that have too few of them."""
        while True:
            counts = self._rack_counts(place)
            fullest = max(counts, key=lambda rack: (counts[rack], rack))
            spare = [rack for rack, size in self._rack_sizes.items() if counts[rack] < size]
            if not any(counts[fullest] - counts[rack] > 1 for rack in spare):
                return
            leaving = max(
                (replica for replica in self.replicas[place] if self._racks[replica] == fullest), key=self._load
            )
            self._move(place, leaving, self._best(place, leaving))

    def even_out(self) -> None:
        """Move replicas from brokers with many to those with few, as long as that makes them more even."""
        while self._even_out_once():
            pass

    def _even_out_once(self) -> bool:
        order = sorted(self._racks, key=self._key)
        for giver in reversed(order):
            for taker in order:
                if len(self._places[giver]) - len(self._places[taker]) < 2:
                    break
                for place in self._places[giver]:
                    if place not in self._places[taker] and self._keeps_spread(place, giver, taker):
                        self._move(place, giver, taker)
                        return True
        return False

    def even_out_leaders(self, places: Iterable[int] | None = None) -> None:
        """Prefer another replica as leader where one leads fewer partitions; only the order of replicas changes."""
        chosen = list(range(len(self.replicas)) if places is None else places)
        is_changed = True
        while is_changed:
            is_changed = False
            for place in chosen:
                replicas = self.replicas[place]
                least = min(replicas, key=lambda replica: self._led[replica])
                if self._led[replicas[0]] - self._led[least] > 1:
                    self._led[replicas[0]] -= 1
                    self._led[least] += 1
                    replicas.remove(least)
                    replicas.insert(0, least)
                    is_changed = True

    def _best(self, place: int, leaving: NodeId) -> NodeId:
        """Return the broker that takes the place of a replica: of the rack with the fewest, the one with the fewest."""
        counts = self._rack_counts(place, leaving)
        return min(
            (broker_id for broker_id in self._racks if broker_id not in self.replicas[place]),
            key=lambda broker_id: (counts[self._racks[broker_id]], *self._key(broker_id)),
        )

    def _keeps_spread(self, place: int, giver: NodeId, taker: NodeId) -> bool:
        if self._racks[giver] == self._racks[taker]:
            return True
        counts = self._rack_counts(place, giver)
        counts[self._racks[taker]] += 1
        spare = [rack for rack, size in self._rack_sizes.items() if counts[rack] < size]
        return not any(max(counts.values()) - counts[rack] > 1 for rack in spare)

    def _rack_counts(self, place: int, leaving: NodeId | None = None) -> Counter[str]:
        return Counter(
            self._racks[replica] for replica in self.replicas[place] if replica != leaving and replica in self._racks
        )

    def _load(self, broker_id: NodeId) -> int:
        return len(self._places[broker_id])

    def _key(self, broker_id: NodeId) -> tuple[int, int, NodeId]:
        return self._load(broker_id), self._elsewhere.get(broker_id, 0), broker_id

    def _move(self, place: int, giver: NodeId, taker: NodeId) -> None:
        replicas = self.replicas[place]
        position = replicas.index(giver)
        replicas[position] = taker
        del self._places[giver][place]
        self._places[taker][place] = None
        if not position:
            self._led[giver] -= 1
            self._led[taker] += 1

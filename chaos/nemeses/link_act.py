"""Faults of links, proved by canaries: small requests on each link that is hit, while the fault holds and after it."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from ...client import clock
from ..links.link import Link
from .act import NotTakenHoldError, Stage
from .fault import Bandwidth, ConnectionResets, LinkFault, PacketLoss, Partition, SlowLink
from .selectors import choose_links

# A cut holds at once; a node may take longer to answer when it has just been started.
_HOLDS_S: Final = 3.0
_WORKS_S: Final = 8.0
_POLL_S: Final = 0.1
# Of the answer to ApiVersions, at least.
_ANSWER_BYTES: Final = 400


class LinkAct:
    def __init__(self, number: int, fault: LinkFault, stage: Stage, random: Random) -> None:
        self.repeat_s = fault.interval_ms / 1000 if isinstance(fault, ConnectionResets) else None
        self._number = number
        self._fault = fault
        self._stage = stage
        self._random = random
        self._links: tuple[Link, ...] = ()

    def begin(self) -> Mapping[str, Any]:
        self._links = self._stage.choose(self._fault.selector, choose_links, self._random)
        self._stage.links[self._number] = self._fault, self._links
        value = {"links": [list(link) for link in self._links]}
        reachable = self._reachable(self._links)
        before = self._stage.target.round_trips_ms(reachable) if isinstance(self._fault, Bandwidth) else {}
        self._apply(self._fault, self._links)
        if not reachable:
            raise NotTakenHoldError("no link could be tried, as none leads to a node that runs", **value)
        return {**value, **self._prove(reachable, before)}

    def repeat(self) -> None:
        self._stage.target.reset(self._links)

    def end(self) -> Mapping[str, Any]:
        target = self._stage.target
        self._stage.links.pop(self._number, None)
        target.heal(self._links)
        held: set[Link] = set()
        for fault, links in self._stage.links.values():
            # Healing takes all that is wrong with a link, of every fault.
            if again := tuple(link for link in links if link in self._links):
                self._apply(fault, again)
                held.update(again)
        waiting = set(self._reachable(tuple(sorted({*self._links} - held))))
        working: set[Link] = set()

        def all_work() -> bool:
            trips = target.round_trips_ms(sorted(waiting))
            working.update(link for link, trip in trips.items() if trip is not None)
            # A node that has been killed or paused meanwhile is another fault's.
            waiting.intersection_update(set(self._reachable(tuple(waiting))) - working)
            return not waiting or self._stage.is_over()

        clock.wait_until(all_work, timeout_s=_WORKS_S, interval_s=_POLL_S)
        for link in sorted(working | waiting):
            self._stage.note_canary(link, works=link in working, during=None)
        if waiting:
            raise NotTakenHoldError(f"{', '.join(map(str, sorted(waiting)))} did not work after the fault")
        return {"links": [list(link) for link in self._links]}

    def _apply(self, fault: LinkFault, links: tuple[Link, ...]) -> None:
        target = self._stage.target
        match fault:
            case Partition():
                target.cut(links, fault.mode)
            case SlowLink():
                target.slow(links, fault.latency_ms, fault.jitter_ms)
            case Bandwidth():
                target.limit(links, fault.kilobytes_s)
            case PacketLoss():
                target.lose(links, fault.percent)
            case ConnectionResets():
                target.reset(links)
            case _:
                raise AssertionError(fault)

    def _prove(self, links: tuple[Link, ...], before: Mapping[Link, float | None]) -> dict[str, Any]:
        target, kind = self._stage.target, self._fault.kind
        if isinstance(self._fault, ConnectionResets):
            unbroken = [link for link in links if not target.is_reset(link)]
            if unbroken:
                raise NotTakenHoldError(f"connections stand on {', '.join(map(str, unbroken))}")
            return {}
        if isinstance(self._fault, PacketLoss):
            return self._prove_loss(links)
        failed: list[Link] = []
        trips: Mapping[Link, float | None] = {}

        def holds() -> bool:
            nonlocal trips, failed
            trips = target.round_trips_ms(links)
            failed = [link for link, trip in trips.items() if not self._is_hit(trip, before.get(link))]
            return not failed

        clock.wait_until(holds, timeout_s=_HOLDS_S, interval_s=_POLL_S)
        for link, trip in trips.items():
            self._stage.note_canary(link, works=trip is not None, during=kind)
        value = {"round_trips_ms": {str(link): trip and round(trip, 1) for link, trip in trips.items()}}
        if failed:
            raise NotTakenHoldError(
                f"{', '.join(map(str, failed))} worked as ever", links=[list(link) for link in self._links], **value
            )
        return {} if isinstance(self._fault, Partition) else value

    def _prove_loss(self, links: tuple[Link, ...]) -> dict[str, Any]:
        lost: Mapping[Link, int] = {}

        def is_lost_everywhere() -> bool:
            nonlocal lost
            lost = self._stage.target.lost_packets(links)
            return all(lost[link] for link in links)

        clock.wait_until(is_lost_everywhere, timeout_s=_HOLDS_S, interval_s=_POLL_S)
        value = {"lost_packets": {str(link): lost[link] for link in links}}
        if whole := [str(link) for link in links if not lost[link]]:
            raise NotTakenHoldError(
                f"no packet was lost on {', '.join(whole)}", links=[list(link) for link in self._links], **value
            )
        return value

    def _is_hit(self, trip_ms: float | None, before_ms: float | None) -> bool:
        match self._fault:
            case Partition():
                return trip_ms is None
            case SlowLink():
                return trip_ms is None or trip_ms >= max(1, self._fault.latency_ms - self._fault.jitter_ms)
            case Bandwidth():
                # A kilobyte a second is a byte a millisecond.
                return trip_ms is None or trip_ms >= (before_ms or 0) / 2 + _ANSWER_BYTES / self._fault.kilobytes_s / 2
            case _:
                return True

    def _reachable(self, links: tuple[Link, ...]) -> tuple[Link, ...]:
        """Those to a node that runs: only they can be tried."""
        return tuple(link for link in links if self._stage.target.state(int(link.target)) == "up")

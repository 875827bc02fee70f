"""A bounded queue in which peers take turns, so that one of them holds up itself alone.

The peers are served round robin, each peer's items first in, first out. Where there is no place left, the newest item
of the peer that has most of them gives up its own (longest queue drop).
"""

from __future__ import annotations

from collections import deque
from ipaddress import IPv6Address
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_NETWORK_BYTES: Final = 8
"""Of an IPv6 address: the host of one has all of its /64."""


class FairQueue(Generic[T]):
    """Nothing is kept of a peer that has no item."""

    def __init__(self, *, items_max: int) -> None:
        self._items_max = items_max
        self._count = 0
        # The peer whose turn is next stands first.
        self._peers: dict[str, deque[T]] = {}

    def __len__(self) -> int:
        return self._count

    def put(self, peer: str, item: T) -> T | None:
        """Returns the item that is dropped for it, which may be itself; None where there was a place."""
        own = self._peers.setdefault(peer, deque())
        own.append(item)
        self._count += 1
        if self._count <= self._items_max:
            return None
        longest = max(map(len, self._peers.values()))
        greedy = peer if len(own) == longest else next(one for one, its in self._peers.items() if len(its) == longest)
        dropped = self._peers[greedy].pop()
        self._forget(greedy)
        return dropped

    def take(self) -> T:
        """Returns the next item. Raises IndexError when the queue is empty."""
        peer = next(iter(self._peers), None)
        if peer is None:
            raise IndexError("no item waits")
        own = self._peers.pop(peer)
        item = own.popleft()
        self._count -= 1
        if own:
            # Its next turn comes behind those of all others.
            self._peers[peer] = own
        return item

    def discard(self, peer: str, item: T) -> None:
        """Takes out an item that does not wait any more; nothing happens where it is not in the queue."""
        own = self._peers.get(peer)
        if own is not None and item in own:
            own.remove(item)
            self._forget(peer)

    def _forget(self, peer: str) -> None:
        self._count -= 1
        if not self._peers[peer]:
            del self._peers[peer]


def peer_of(host: str) -> str:
    """Returns which peer an address belongs to: an IPv4 address to itself, one of IPv6 to its /64."""
    if ":" not in host:
        return host
    try:
        return IPv6Address(host).packed[:_NETWORK_BYTES].hex(":", 2)
    except ValueError:
        return host

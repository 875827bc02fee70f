"""A network in memory between simulated voters: it delays, cuts in one direction or both, and breaks links.

A `NetworkMode` says how much worse than its promise it is. A stream network keeps what `links/rules/peer_links.py`
promises: order, at most once. A process that ends is refused for; a network that cuts is silent, unless it is to
refuse for the living, too. A hostile one drops, doubles and reorders messages, and delivers some to the next process
of the same node: the quorum must not lose anything then either.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from uuid import UUID

from msgspec import Struct

from ...protocol.errors import CorruptData
from ...protocol.ids import NodeId
from ...quorum.links.rules.peer_links import LinkListener
from .process_loop import ProcessLoop
from .virtual_loop import VirtualLoop

# How long until a peer that is gone is noticed: the end of a connection and two refused ones.
_GONE_S = 0.02
# How long connections take to close at a graceful stop.
_CLOSING_S = 0.01


class NetworkMode(Struct, frozen=True, kw_only=True):
    """What may happen to a message. Chances are per message; delays in seconds."""

    is_hostile: bool
    delay_min_s: float = 0.0005
    delay_max_s: float = 0.01
    stall_chance: float = 0.01
    stall_max_s: float = 1.0
    drop_chance: float = 0.0
    late_chance: float = 0.0
    double_chance: float = 0.0


STREAMS = NetworkMode(is_hostile=False)
HOSTILE = NetworkMode(is_hostile=True, stall_chance=0.0, drop_chance=0.03, late_chance=0.07, double_chance=0.03)


class _Endpoint:
    """One process's side of the network."""

    def __init__(self, loop: ProcessLoop, directory_id: UUID, listener: LinkListener) -> None:
        self.loop = loop
        self.directory_id = directory_id
        self.listener = listener
        # Each connection has a number, so that nothing outlives it.
        self.peers_up: dict[int, int] = {}


class Network:
    """All links between the nodes of a simulation."""

    def __init__(self, loop: VirtualLoop, random: Random, mode: NetworkMode, trace: Callable[[str], None]) -> None:
        self.mode = mode
        self.counts: Counter[str] = Counter()
        """What happened to messages."""
        self._loop = loop
        self._random = random
        self._trace = trace
        self._endpoints: dict[int, _Endpoint] = {}
        self._cut: set[tuple[int, int]] = set()
        self._connection_count = 0
        self._last_due_s: dict[tuple[int, int], float] = {}

    @property
    def cuts(self) -> list[tuple[int, int]]:
        return sorted(self._cut)

    def attach(self, node_id: int, loop: ProcessLoop, directory_id: UUID, listener: LinkListener) -> None:
        self._endpoints[node_id] = _Endpoint(loop, directory_id, listener)
        for peer_id in sorted(self._endpoints):
            if peer_id != node_id:
                self._connect(node_id, peer_id)
                self._connect(peer_id, node_id)

    def detach(self, node_id: int, *, is_noticed: bool = True) -> None:
        """End a process: its peers see their links close, and its address does not answer."""
        if self._endpoints.pop(node_id, None) is None:
            return
        for peer_id in sorted(self._endpoints):
            peer = self._endpoints[peer_id]
            if node_id in peer.peers_up:
                del peer.peers_up[node_id]
                peer.loop.call_soon(peer.listener.on_link_down, node_id)
            if is_noticed and not self._is_cut_either_way(node_id, peer_id):
                peer.loop.call_later(_GONE_S, self._tell_gone, peer_id, node_id)

    def _tell_gone(self, peer_id: int, node_id: int) -> None:
        if node_id not in self._endpoints and peer_id in self._endpoints:
            self._endpoints[peer_id].listener.on_peer_gone(NodeId(node_id))

    def cut(self, source_id: int, target_id: int) -> None:
        """Let nothing through in this direction; sooner or later, or never, the source's link goes down."""
        self._cut.add((source_id, target_id))
        if self._random.random() < 0.5:
            self._disconnect(source_id, target_id)

    def refuse(self, source_id: int, target_id: int) -> None:
        """Let a firewall answer for a target that may well live: the source's link is closed and its dials refused."""
        self._cut.add((source_id, target_id))
        self._disconnect(source_id, target_id)
        source = self._endpoints.get(source_id)
        if source is not None:
            source.loop.call_later(_GONE_S, self._tell_refused, source_id, source, target_id)

    def _tell_refused(self, source_id: int, source: _Endpoint, target_id: int) -> None:
        if (source_id, target_id) in self._cut and self._endpoints.get(source_id) is source:
            source.listener.on_peer_gone(NodeId(target_id))

    def heal(self, source_id: int, target_id: int) -> None:
        self._cut.discard((source_id, target_id))
        self._disconnect(source_id, target_id)
        self._connect(source_id, target_id)

    def break_link(self, source_id: int, target_id: int) -> None:
        """Let the link go down and up at once; what was on the way is lost."""
        if (source_id, target_id) not in self._cut:
            self.heal(source_id, target_id)

    def _is_cut_either_way(self, a: int, b: int) -> bool:
        return (a, b) in self._cut or (b, a) in self._cut

    def _connect(self, source_id: int, target_id: int) -> None:
        source, target = self._endpoints.get(source_id), self._endpoints.get(target_id)
        if source is None or target is None or (source_id, target_id) in self._cut or target_id in source.peers_up:
            return
        self._connection_count += 1
        source.peers_up[target_id] = self._connection_count
        source.loop.call_later(
            self._random.uniform(0.0005, 0.01), self._tell_up, source_id, source, target_id, target.directory_id
        )

    def _tell_up(self, source_id: int, source: _Endpoint, target_id: int, directory_id: UUID) -> None:
        if target_id in source.peers_up and self._endpoints.get(source_id) is source:
            source.listener.on_link_up(NodeId(target_id), directory_id)

    def _disconnect(self, source_id: int, target_id: int) -> None:
        source = self._endpoints.get(source_id)
        if source is not None and target_id in source.peers_up:
            del source.peers_up[target_id]
            source.loop.call_soon(source.listener.on_link_down, target_id)
            self._last_due_s.pop((source_id, target_id), None)

    def send(self, source_id: int, target_id: int, data: bytes) -> None:
        mode, random = self.mode, self._random
        target = self._endpoints.get(target_id)
        source = self._endpoints.get(source_id)
        if target is None or source is None or (source_id, target_id) in self._cut or target_id not in source.peers_up:
            return
        now_s = self._loop.time()
        delay_s = random.uniform(mode.delay_min_s, mode.delay_max_s)
        if random.random() < mode.stall_chance:
            self.counts["stalled"] += 1
            delay_s += random.uniform(0, mode.stall_max_s)
        if not mode.is_hostile:
            due_s = max(now_s + delay_s, self._last_due_s.get((source_id, target_id), 0.0))
            self._last_due_s[source_id, target_id] = due_s
            connection = source.peers_up[target_id]
            self._loop.call_at(due_s, self._deliver, source_id, target_id, data, target, connection)
            return
        if random.random() < mode.drop_chance:
            self.counts["dropped"] += 1
            return
        if random.random() < mode.late_chance:
            self.counts["overtaken"] += 1
            delay_s += random.uniform(0, mode.stall_max_s * 1.5)
        self._loop.call_at(now_s + delay_s, self._deliver, source_id, target_id, data, None, 0)
        if random.random() < mode.double_chance:
            self.counts["doubled"] += 1
            again_s = now_s + delay_s + random.uniform(0, mode.stall_max_s)
            self._loop.call_at(again_s, self._deliver, source_id, target_id, data, None, 0)

    def _deliver(self, source_id: int, target_id: int, data: bytes, target: _Endpoint | None, connection: int) -> None:
        """With `target`, deliver to this process only, and only while the connection is up."""
        now = self._endpoints.get(target_id)
        if now is None or (source_id, target_id) in self._cut:
            return
        if target is not None:
            source = self._endpoints.get(source_id)
            if now is not target or source is None or source.peers_up.get(target_id) != connection:
                return
        self.counts["messages"] += 1
        self._trace(f"message {source_id} {target_id} {len(data)}")
        now.loop.call_soon(_hear, now.listener, source_id, data)


def _hear(listener: LinkListener, source_id: int, data: bytes) -> None:
    try:
        listener.on_message(NodeId(source_id), data)
    except CorruptData as error:
        raise AssertionError(f"a voter refuses another voter's message: {error}") from error


class SimulatedLinks:
    """The links of one process (see `quorum/links/rules/peer_links.py`)."""

    def __init__(self, network: Network, node_id: int, directory_id: UUID, loop: ProcessLoop) -> None:
        self._network = network
        self._node_id = node_id
        self._directory_id = directory_id
        self._loop = loop

    def start(self, listener: LinkListener) -> None:
        self._network.attach(self._node_id, self._loop, self._directory_id, listener)

    def send(self, peer_id: int, data: bytes) -> None:
        self._network.send(self._node_id, peer_id, data)

    async def stop(self) -> None:
        # Connections take a while to close, and messages come until they have.
        closed = self._loop.create_future()
        self._loop.call_later(_CLOSING_S, closed.set_result, None)
        await closed
        self._network.detach(self._node_id)

"""Fast fencing: brokers are fenced before their sessions end when their process is gone (decision 6).

A broker's process that ends without a word closes its connections, and its machine then refuses new ones. The active
controller that sees the first looks for the second, at the endpoint which the broker registered for other brokers and,
where that refuses, at all others that it registered on the same host: a proxy or a firewall in front of one of them
refuses for a process that lives. What becomes of one attempt:

| state   | leaves by                                                                                  | to      |
|---------|--------------------------------------------------------------------------------------------|---------|
| idle    | the broker's side closed its heartbeat connection, or this controller has become active    | dialing |
| dialing | refused, but not for the third time                                                        | dialing |
| dialing | refused for the third time, or later                                                       | fencing |
| dialing | the same without a fresh quorum, and no session has passed since the attempt began         | dialing |
| dialing | anything but a refusal; a heartbeat or registration of the broker; the end of leadership   | idle    |
| idle    | the broker's side accepted the dial before, and closed that connection soon                | dialing |
| fencing | the decision to fence is committed                                                         | fenced  |
| fencing | a heartbeat or registration of the broker, the end of leadership: nothing is decided then  | idle    |
| fencing | the decision changes nothing or cannot be committed                                        | idle    |
| fenced  | a heartbeat under the epoch that was fenced: it was alive, and is left alone for a while   | barred  |
| fenced  | a registration                                                                             | idle    |
| barred  | the end of ten sessions                                                                    | idle    |

An attempt begins, and ends in a fence, only for a broker that is unfenced, not shutting down and not this node, and
while fewer than half of the brokers were fenced so within a session and have not registered anew. It fences only with a
fresh quorum, and waits for one: a process may end in a pause of the whole machine in which no voter was heard, and no
second sign of its end will come. A heartbeat that came before the attempt began, and waited behind a long decision, is
none of those that the table speaks of. Nothing is unsafe when it errs: epochs fence, this only decides how soon.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

from msgspec import Struct

from ...protocol.ids import BrokerEpoch, NodeId
from ..metadata.image import BrokerRegistration, MetadataImage

# After the attempt began. The second tells a process that ends, and accepts a last time, from one that is gone; the
# third gives a machine under load some time. Clients try to connect again after 50 to 150 ms, and wait for longer each
# time that it was in vain: better when they know the next leader by then.
DIAL_TIMES_MS: Final = (0, 10, 30)
# Between dials of an attempt that lacks nothing but a fresh quorum.
QUORUM_WAIT_MS: Final = 100
# How long an attempt waits, by how many came before it. A process that ends closes one socket after the other: what
# listens may accept when connections are closed already. A proxy in front of it accepts until it has noticed. Whatever
# accepts and closes for longer is not one that ends, but one that takes no more connections.
_BEGINNINGS_MS: Final = (0, 0, 50, 250)
BARRED_SESSIONS: Final = 10
# Of one broker; each refuses within a fraction of a millisecond.
PORTS_MAX: Final = 64


class Attempt(Struct, frozen=True, kw_only=True, eq=False):
    """Looking for one process of a broker, at these ports of its host, that for other brokers first."""

    broker_id: NodeId
    broker_epoch: BrokerEpoch
    host: str
    ports: tuple[int, ...]
    started_ms: int
    new_beginnings: int = 0


class Dial(Struct, frozen=True, kw_only=True):
    """Dial the attempt's ports one by one, until one does not refuse, at that time or, when it has passed, at once.

    `on_dialed` is called with the last one.
    """

    attempt: Attempt
    at_ms: int


class Fence(Struct, frozen=True, kw_only=True):
    """Shut out the process that registered under this epoch."""

    broker_id: NodeId
    broker_epoch: BrokerEpoch


class Bar(Struct, frozen=True, kw_only=True):
    """Tell the operator: a broker that was fenced so is alive. It is left to its sessions until then."""

    broker_id: NodeId
    until_ms: int
    wrong_count: int
    """How often that has happened to any broker."""


Effect: TypeAlias = Dial | Fence | Bar


class FastFencing:
    """Of one controller. Times are of the loop."""

    def __init__(self, *, node_id: NodeId, listener_name: str, session_timeout_ms: int) -> None:
        """`listener_name` is that of the listener between brokers; the first is taken of a broker that has none."""
        self._node_id = node_id
        self._listener_name = listener_name
        self._session_timeout_ms = session_timeout_ms
        self._attempts: dict[NodeId, Attempt] = {}
        self._refusals: dict[NodeId, int] = {}
        # When the sign came for which a broker was looked for last.
        self._begun_ms: dict[NodeId, int] = {}
        # On becoming active: who is looked for first, and who when that has come to its end.
        self._first: NodeId | None = None
        self._later: tuple[NodeId, ...] = ()
        # Asked for, and carried out.
        self._fencing: dict[NodeId, Fence] = {}
        self._fenced: dict[NodeId, Fence] = {}
        self._fenced_ms: dict[NodeId, int] = {}
        self._barred_until_ms: dict[NodeId, int] = {}
        self._wrong_count = 0
        self._count = 0

    @property
    def count(self) -> int:
        """Brokers that were fenced so, since start."""
        return self._count

    @property
    def wrong_count(self) -> int:
        """Of these, those that were alive."""
        return self._wrong_count

    def on_active(self, image: MetadataImage, now_ms: int, *, former_leader_id: NodeId | None) -> tuple[Effect, ...]:
        """Probe all brokers, since no controller watched their connections for a while; the former leader first."""
        self.on_inactive()
        first = [former_leader_id] if former_leader_id is not None else []
        later = tuple(NodeId(broker_id) for broker_id in sorted(image.brokers) if broker_id not in first)
        effects = self._begin(first, image, now_ms)
        if not effects:
            return self._begin(later, image, now_ms)
        self._first, self._later = former_leader_id, later
        return effects

    def on_inactive(self) -> None:
        """Cancels all probes; this controller is no longer active."""
        self._attempts.clear()
        self._fencing.clear()
        self._first, self._later = None, ()

    def on_closed(self, broker_id: NodeId, image: MetadataImage, now_ms: int) -> tuple[Effect, ...]:
        """Hear that the broker's side closed the connection that its last heartbeat came by."""
        return self._begin([broker_id], image, now_ms)

    def on_heard(
        self, broker_id: NodeId, broker_epoch: BrokerEpoch, image: MetadataImage, now_ms: int, *, heard_ms: int
    ) -> tuple[Effect, ...]:
        """Hear a heartbeat or a registration of a broker, which came at `heard_ms` and may have waited for its turn."""
        if heard_ms < self._begun_ms.get(broker_id, heard_ms):
            # It says nothing about a process that ended since.
            return ()
        effects: tuple[Effect, ...] = ()
        self._fencing.pop(broker_id, None)
        fenced = self._fenced.pop(broker_id, None)
        if fenced is not None and fenced.broker_epoch == broker_epoch:
            self._wrong_count += 1
            until_ms = now_ms + BARRED_SESSIONS * self._session_timeout_ms
            self._barred_until_ms[broker_id] = until_ms
            effects = (Bar(broker_id=broker_id, until_ms=until_ms, wrong_count=self._wrong_count),)
        elif fenced is not None:
            # The next process of the broker: that the other one was gone was right.
            del self._fenced_ms[broker_id]
        if broker_id in self._attempts:
            effects += self._end(broker_id, image, now_ms)
        return effects

    def is_dialing(self, attempt: Attempt) -> bool:
        """Whether it is still to be dialed."""
        return self._attempts.get(attempt.broker_id) is attempt

    def on_dialed(
        self, attempt: Attempt, image: MetadataImage, now_ms: int, *, is_refused: bool, has_quorum: bool
    ) -> tuple[Effect, ...]:
        """Hear how a dial ended; what came of an attempt that is over does not matter any more.

        `has_quorum` tells that a majority of the voters was heard just now.
        """
        if not self.is_dialing(attempt):
            return ()
        broker_id = attempt.broker_id
        refusal_count = self._refusals[broker_id] = self._refusals[broker_id] + 1
        if is_refused and refusal_count < len(DIAL_TIMES_MS):
            return (Dial(attempt=attempt, at_ms=attempt.started_ms + DIAL_TIMES_MS[refusal_count]),)
        broker = image.brokers.get(broker_id)
        is_same = broker is not None and broker.epoch == attempt.broker_epoch
        is_gone = is_refused and is_same and self._may_fence(broker_id, image, now_ms)
        if is_gone and not has_quorum and now_ms < attempt.started_ms + self._session_timeout_ms:
            return (Dial(attempt=attempt, at_ms=now_ms + QUORUM_WAIT_MS),)
        effects: tuple[Effect, ...] = ()
        if is_gone and has_quorum:
            fence = Fence(broker_id=broker_id, broker_epoch=attempt.broker_epoch)
            self._fencing[broker_id] = fence
            effects = (fence,)
        return effects + self._end(broker_id, image, now_ms)

    def is_fencing(self, fence: Fence) -> bool:
        """Whether it is still to be decided: the decision has to ask."""
        return self._fencing.get(fence.broker_id) is fence

    def on_fenced(self, fence: Fence, now_ms: int) -> None:
        """Hear that the fence is committed. If the broker was heard after that was decided, it is heard again."""
        self._count += 1
        if self.is_fencing(fence):
            del self._fencing[fence.broker_id]
        self._fenced[fence.broker_id], self._fenced_ms[fence.broker_id] = fence, now_ms

    def on_not_fenced(self, fence: Fence) -> None:
        """Hear that nothing was decided, or that it may not be committed."""
        if self.is_fencing(fence):
            del self._fencing[fence.broker_id]

    def on_accepted_and_closed(self, attempt: Attempt, image: MetadataImage, now_ms: int) -> tuple[Effect, ...]:
        """Hear that the dial which ended an attempt gave a connection, and that the broker's side soon closed it."""
        if attempt.new_beginnings + 1 == len(_BEGINNINGS_MS):
            return ()
        return self._begin([attempt.broker_id], image, now_ms, new_beginnings=attempt.new_beginnings + 1)

    def _begin(
        self,
        broker_ids: Iterable[NodeId],
        image: MetadataImage,
        now_ms: int,
        *,
        new_beginnings: int = 0,
    ) -> tuple[Effect, ...]:
        effects: list[Effect] = []
        for broker_id in broker_ids:
            is_looked_for = broker_id in self._attempts or broker_id in self._fencing
            if is_looked_for or not self._may_fence(broker_id, image, now_ms):
                continue
            broker = image.brokers[broker_id]
            endpoint = broker.endpoint(self._listener_name) or next(iter(broker.endpoints), None)
            if endpoint is None:
                continue
            attempt = Attempt(
                broker_id=broker_id,
                broker_epoch=broker.epoch,
                host=endpoint.host,
                ports=_ports_at(endpoint.host, broker, first=endpoint.port),
                started_ms=now_ms + _BEGINNINGS_MS[new_beginnings],
                new_beginnings=new_beginnings,
            )
            self._attempts[broker_id], self._refusals[broker_id] = attempt, 0
            self._begun_ms[broker_id] = now_ms
            effects.append(Dial(attempt=attempt, at_ms=attempt.started_ms + DIAL_TIMES_MS[0]))
        return tuple(effects)

    def _end(self, broker_id: NodeId, image: MetadataImage, now_ms: int) -> tuple[Effect, ...]:
        del self._attempts[broker_id]
        if broker_id != self._first:
            return ()
        later, self._first, self._later = self._later, None, ()
        return self._begin(later, image, now_ms)

    def _may_fence(self, broker_id: NodeId, image: MetadataImage, now_ms: int) -> bool:
        broker = image.brokers.get(broker_id)
        return (
            broker is not None
            and broker_id != self._node_id
            and broker.is_active
            and now_ms >= self._barred_until_ms.get(broker_id, now_ms)
            and self._has_room(broker_id, image.brokers.values(), now_ms)
        )

    def _has_room(self, broker_id: NodeId, brokers: Iterable[BrokerRegistration], now_ms: int) -> bool:
        """Whether this one may be fenced besides the others: less than half of those that were in lately."""
        lately = {one for one, at_ms in self._fenced_ms.items() if now_ms < at_ms + self._session_timeout_ms}
        lately |= self._fencing.keys()
        were_in = lately | {broker.id for broker in brokers if not broker.is_fenced}
        return len(lately | {broker_id}) <= (len(were_in) - 1) // 2


def _ports_at(host: str, broker: BrokerRegistration, *, first: int) -> tuple[int, ...]:
    """Where the broker listens on one host: a process that is gone refuses at each of them."""
    others = (endpoint.port for endpoint in broker.endpoints if endpoint.host == host)
    return tuple(dict.fromkeys((first, *others)))[:PORTS_MAX]

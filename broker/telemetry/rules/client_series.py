"""The series that clients push, bounded in number, forgotten when their client pushes no more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from msgspec import Struct

CLIENTS_MAX: Final = 1_000
SERIES_PER_CLIENT_MAX: Final = 500
"""A Java producer of some topics has 200, librdkafka ten and some for each broker."""
SERIES_MAX: Final = 20_000
"""Of all clients: some 12 MiB, and two seconds of a scrape."""
GONE_MS: Final = 60_000
"""Series of a client that has disconnected are kept so long: what it pushed last is to be scraped once."""
CLIENT_LABELS: Final = ("client_instance_id", "client_id")

Labels: TypeAlias = tuple[tuple[str, str], ...]


class PushedPoint(Struct, frozen=True, kw_only=True):
    """One data point: `labels` are its attributes, sorted; a delta is added to what was pushed before."""

    name: str
    labels: Labels
    is_counter: bool
    is_delta: bool
    value: float


class SeriesFamily(Struct, frozen=True, kw_only=True):
    """All series of one name; each has `CLIENT_LABELS` too."""

    name: str
    is_counter: bool
    series: Sequence[tuple[Labels, float]]


class _PushingClient:
    __slots__ = ("client_id", "expires_ms", "is_gone", "values")

    def __init__(self) -> None:
        self.client_id = ""
        self.expires_ms = 0
        self.is_gone = False
        self.values: dict[tuple[str, Labels], float] = {}


class ClientSeries:
    """What was pushed last, by client instance. `dropped` counts the points for which there was no room."""

    def __init__(
        self,
        *,
        clients_max: int = CLIENTS_MAX,
        series_per_client_max: int = SERIES_PER_CLIENT_MAX,
        series_max: int = SERIES_MAX,
    ) -> None:
        self._clients_max = clients_max
        self._series_per_client_max = series_per_client_max
        self._series_max = series_max
        self._clients: dict[UUID, _PushingClient] = {}
        self._count = 0
        # Of each name: whether it is a counter, and the number of its series.
        self._kinds: dict[str, tuple[bool, int]] = {}
        self.dropped = 0

    def __len__(self) -> int:
        return self._count

    @property
    def client_count(self) -> int:
        return len(self._clients)

    def push(
        self, instance_id: UUID, client_id: str, points: Iterable[PushedPoint], *, now_ms: int, expires_ms: int
    ) -> None:
        """Takes the points in; the client's series are kept until `expires_ms`, if it does not push before."""
        self.forget(now_ms)
        client = self._clients.get(instance_id)
        if client is None:
            if len(self._clients) >= self._clients_max and not self._make_room():
                self.dropped += sum(1 for _ in points)
                return
            client = self._clients[instance_id] = _PushingClient()
        client.client_id = client_id
        client.expires_ms = expires_ms
        client.is_gone = False
        for point in points:
            self._take(client, point)

    def disconnect(self, instance_id: UUID, *, now_ms: int) -> None:
        """The client is gone, or comes back by another connection and pushes again."""
        client = self._clients.get(instance_id)
        if client is not None:
            client.expires_ms = min(client.expires_ms, now_ms + GONE_MS)
            client.is_gone = True

    def forget(self, now_ms: int) -> None:
        for instance_id in [one for one, client in self._clients.items() if client.expires_ms <= now_ms]:
            self._remove(instance_id)

    def _make_room(self) -> bool:
        """Forgets the disconnected client whose series would expire first; False where all are connected."""
        gone = {instance_id: client.expires_ms for instance_id, client in self._clients.items() if client.is_gone}
        if gone:
            self._remove(min(gone, key=gone.__getitem__))
        return bool(gone)

    def _remove(self, instance_id: UUID) -> None:
        for name, _ in self._clients.pop(instance_id).values:
            self._release(name)

    def families(self) -> Iterator[SeriesFamily]:
        """By name."""
        by_name: dict[str, list[tuple[Labels, float]]] = {}
        for instance_id, client in self._clients.items():
            own = tuple(zip(CLIENT_LABELS, (str(instance_id), client.client_id), strict=True))
            for (name, labels), value in client.values.items():
                by_name.setdefault(name, []).append((own + labels, value))
        for name, series in sorted(by_name.items()):
            yield SeriesFamily(name=name, is_counter=self._kinds[name][0], series=series)

    def _take(self, client: _PushingClient, point: PushedPoint) -> None:
        key = (point.name, point.labels)
        before = client.values.get(key)
        is_counter, number = self._kinds.get(point.name, (point.is_counter, 0))
        is_full = len(client.values) >= self._series_per_client_max or self._count >= self._series_max
        # A name has one kind, whichever client was first.
        if is_counter != point.is_counter or (before is None and is_full):
            self.dropped += 1
            return
        if before is None:
            self._kinds[point.name] = (is_counter, number + 1)
            self._count += 1
        client.values[key] = point.value + (before or 0.0) if point.is_delta else point.value

    def _release(self, name: str) -> None:
        is_counter, number = self._kinds[name]
        self._count -= 1
        if number == 1:
            del self._kinds[name]
        else:
            self._kinds[name] = (is_counter, number - 1)

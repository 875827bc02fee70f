"""What only a node itself knows of how it is."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class DirectoryFacts(Struct, frozen=True, kw_only=True):
    """A log directory of this node. `has_room`: its disk has more free bytes than `log.dir.reserve.bytes`."""

    path: str
    is_online: bool
    has_room: bool


class NodeFacts(Struct, frozen=True, kw_only=True):
    """What only the node itself knows of how it is.

    `failure` is why it is about to end, None while it goes on. `offline_replicas` are partitions of this node whose log
    cannot be used. `loading_coordinators` are partitions of internal topics that it leads but has not read yet.
    """

    failure: str | None = None
    started_ms: int | None = None
    directories: Sequence[DirectoryFacts] = ()
    offline_replicas: Sequence[tuple[str, int]] = ()
    loading_coordinators: int = 0

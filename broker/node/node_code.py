"""The code that nodes need, loaded by the process that they are forked from."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from .unused_modules import leave_out

_HANDLERS: Final = ("penstock.broker.node.handlers", "penstock.broker.node.controller_handlers")
_COORDINATORS: Final = "penstock.broker.groups.group_shard"
# What a node loads while it starts, and not before: nodes that do without it would only be larger.
_LATER: Final = (
    "encodings.idna",
    "penstock.broker.node.main",
    "penstock.broker.node.start_command",
    "penstock.broker.node.voter_link",
    "uvloop",
)
_OF_SEVERAL: Final = (
    "penstock.broker.cluster.peers",
    "penstock.broker.node.controller_listener",
    "penstock.broker.node.controller_registration",
    "penstock.broker.node.heartbeat_connections",
    "penstock.broker.node.observer_link",
    "penstock.broker.replication.fetcher_link",
    "penstock.broker.replication.replica_fetcher",
    "penstock.quorum.controller.broker_probes",
    "penstock.quorum.links.stream_links",
    "penstock.quorum.metadata.event_derivation",
    "penstock.quorum.metadata.event_ring",
)


def load() -> None:
    """What the only node of a cluster needs until it serves, and no thread."""
    leave_out()
    for module in _LATER:
        with suppress(ImportError):
            # Without uvloop a node takes asyncio's own loop.
            import_module(module)


def load_for_several() -> None:
    """What nodes that have others need on top of that."""
    for module in _OF_SEVERAL:
        import_module(module)


def load_handlers() -> None:
    """What nodes load after their start, too."""
    import_module(_COORDINATORS)
    for package in _HANDLERS:
        for found in iter_modules(import_module(package).__path__):
            import_module(f"{package}.{found.name}")

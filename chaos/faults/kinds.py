"""The kinds of faults: one name for each, whether a simulation, a schedule, a test or a terminal asks for it.

A name is that of a kind, or of a kind with what it hits: `partition`, `partition:leaders`, `kill:all`. Profiles of the
simulation (`simulation/cluster/profiles.py`), schedules (`nemeses/`) and histories use these names and no others.
Names of partitions, clocks and selectors are those of Jepsen's nemeses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from ...local.errors import ClusterError

Group: TypeAlias = Literal["links", "processes", "clocks", "disks", "tiers", "operations", "clients", "delays"]

Breaker: TypeAlias = Literal["proxies", "namespaces"]
"""What breaks the links of real nodes: proxies that they go through, or the kernel, in a network namespace for each."""
BREAKERS: Final[tuple[Breaker, ...]] = get_args(Breaker)

# Of links, by what they cut.
LINK_SELECTORS: Final[Mapping[str, str]] = {
    "one": "one node, from all others and from clients",
    "majority": "nodes in two halves; clients reach both",
    "minority-third": "a third of the nodes at most, from the others",
    "majorities-ring": "every node reaches a majority, and each another one",
    "bridge": "two halves that one node still joins",
    "one-way": "one node, in one direction: it reaches no other one, or no other one reaches it",
    "leaders": "the leader of a partition, from the other nodes; its clients stay with it",
    "controllers": "the active controller, from the other nodes",
    "client-from-leader": "one client, from the leader of a partition",
    "link": "one link, in one or both directions",
}
# Of nodes.
NODE_SELECTORS: Final[Mapping[str, str]] = {
    "one": "one node",
    "minority": "as many as leave a majority",
    "majority": "as many as leave none",
    "all": "all nodes",
    "leaders": "the leader of a partition",
    "controllers": "the active controller",
}


class Kind(Struct, frozen=True, kw_only=True):
    """`selectors` are what it may hit on a real cluster; `is_real` says that a schedule may have it, `simulated` under
    which of its names the simulation has it: with a selector, alone (""), or not at all; `breakers`, of a fault of
    links, what can do it."""

    name: str
    group: Group
    about: str
    selectors: tuple[str, ...] = ()
    is_real: bool = True
    simulated: tuple[str, ...] = ()
    breakers: tuple[Breaker, ...] = BREAKERS


_LINKS: Final = tuple(LINK_SELECTORS)
_NODES: Final = tuple(NODE_SELECTORS)
_ALONE: Final = ("",)
# Of what damages data: never more than one node by a draw.
_ONE: Final = ("one", "leaders", "controllers")

_KINDS: Final = (
    Kind(name="partition", group="links", selectors=_LINKS, simulated=("", "leaders", "link"),
         about="links carry nothing: silent, reset or refused"),
    Kind(name="slow-link", group="links", selectors=_LINKS, simulated=_ALONE,
         about="links deliver late, by a latency with jitter"),
    Kind(name="bandwidth", group="links", selectors=_LINKS, about="links carry so many bytes a second"),
    Kind(name="packet-loss", group="links", selectors=_LINKS, breakers=("namespaces",),
         about="links lose so many packets of a hundred, by chance"),
    Kind(name="connection-resets", group="links", selectors=_LINKS, simulated=_ALONE,
         about="all connections of links are reset, again and again"),
    Kind(name="kill", group="processes", selectors=_NODES, simulated=("", "all"), about="SIGKILL, and a start later"),
    Kind(name="pause", group="processes", selectors=_NODES, simulated=("", "controllers"),
         about="SIGSTOP, and SIGCONT later"),
    Kind(name="stop", group="processes", selectors=_NODES, simulated=_ALONE, about="SIGTERM, and a start later"),
    Kind(name="restart", group="processes", selectors=_NODES, about="SIGTERM, and a start at once"),
    Kind(name="rolling-restart", group="processes", about="every node restarted, one after the other"),
    Kind(name="stop-under-way", group="processes", is_real=False, simulated=_ALONE,
         about="SIGTERM while a request is under way to the node"),
    Kind(name="clock-bump", group="clocks", selectors=_NODES, simulated=_ALONE, about="a node's wall clock jumps"),
    Kind(name="clock-strobe", group="clocks", selectors=_NODES,
         about="a node's wall clock jumps there and back, many times a second"),
    Kind(name="disk-full", group="disks", selectors=_NODES, about="ENOSPC: no room for what is written"),
    Kind(name="slow-disk", group="disks", selectors=_NODES, simulated=_ALONE, about="calls of a disk take longer"),
    Kind(name="disk-error", group="disks", selectors=_NODES, simulated=_ALONE, about="EIO: calls of a disk fail"),
    Kind(name="failed-read", group="disks", selectors=_NODES, simulated=_ALONE, about="a few reads fail, once"),
    Kind(name="no-descriptors", group="disks", selectors=_NODES, simulated=_ALONE,
         about="EMFILE: for some calls no file can be opened"),
    Kind(name="bit-flip", group="disks", selectors=_ONE, simulated=_ALONE,
         about="one bit of a log on a disk is another one"),
    Kind(name="lost-file", group="disks", is_real=False, simulated=_ALONE,
         about="a file of a log or of a log directory is gone, empty, torn or half of zeros"),
    Kind(name="truncation", group="disks", selectors=_ONE,
         about="a node is killed, and the end of a log is gone when it starts"),
    Kind(name="power-loss", group="disks", selectors=_NODES, simulated=_ALONE,
         about="a node is killed, and what it had not synced is gone when it starts"),
    Kind(name="emptied-disk", group="disks", selectors=_ONE, simulated=_ALONE,
         about="a node is killed, and starts with an empty disk"),
    Kind(name="emptied-directory", group="disks", is_real=False, simulated=_ALONE,
         about="a node is killed, and starts with one log directory empty"),
    Kind(name="tier-outage", group="tiers", is_real=False, simulated=_ALONE,
         about="the tier's store does nothing for a while"),
    Kind(name="tier-error", group="tiers", is_real=False, simulated=_ALONE,
         about="some calls of the tier's store fail, or are not answered"),
    Kind(name="ambush", group="delays", is_real=False, simulated=_ALONE,
         about="one request is held up while the world changes"),
    Kind(name="late-answer", group="delays", is_real=False, simulated=_ALONE, about="an answer is held up"),
    Kind(name="reassignment", group="operations", simulated=_ALONE, about="a partition moves to other replicas"),
    Kind(name="cancelled-reassignment", group="operations", simulated=_ALONE, about="moves are cancelled"),
    Kind(name="preferred-election", group="operations", simulated=_ALONE, about="preferred replicas lead again"),
    Kind(name="moved-leader", group="operations", simulated=_ALONE, about="another replica is made the leader"),
    Kind(name="min-isr", group="operations", simulated=_ALONE, about="min.insync.replicas of a topic changes"),
    Kind(name="segment-size", group="operations", simulated=_ALONE, about="a topic's segments get another size"),
    Kind(name="segment-age", group="operations", simulated=_ALONE, about="a topic's segments roll at another age"),
    Kind(name="retention", group="operations", is_real=False, simulated=_ALONE,
         about="a topic keeps another number of bytes"),
    Kind(name="drain", group="operations", simulated=_ALONE, about="a broker gives its leaderships away"),
    Kind(name="undrain", group="operations", is_real=False, simulated=_ALONE, about="a drained broker leads again"),
    Kind(name="directory-move", group="operations", is_real=False, simulated=_ALONE,
         about="a replica's log moves to another log directory"),
    Kind(name="move-throttle", group="operations", is_real=False, simulated=_ALONE,
         about="moves between log directories get another rate"),
    Kind(name="topics", group="operations", about="topics are created and deleted, again and again"),
    Kind(name="quorum-transfer", group="operations", about="another controller becomes the active one"),
    Kind(name="join", group="operations", about="a broker joins, takes replicas over, gives them back and leaves"),
    Kind(name="delete-records", group="operations", is_real=False, simulated=_ALONE,
         about="a client deletes records"),
    Kind(name="delete-near-start", group="operations", is_real=False, simulated=_ALONE,
         about="a client deletes records near the log start"),
    Kind(name="client-pause", group="clients", is_real=False, simulated=_ALONE, about="a client stands still"),
    Kind(name="client-freeze", group="clients", is_real=False, simulated=_ALONE,
         about="a client stands still until others have its place"),
    Kind(name="zombie-commit", group="clients", is_real=False, simulated=_ALONE,
         about="a former member commits offsets"),
    Kind(name="zombie-produce", group="clients", is_real=False, simulated=_ALONE,
         about="a former transactional producer goes on"),
    Kind(name="impatient-life", group="clients", is_real=False, simulated=_ALONE,
         about="a transactional client does not wait for answers"),
    Kind(name="mixed-commits", group="clients", is_real=False, simulated=_ALONE,
         about="a client commits offsets in two ways"),
)  # fmt: skip

KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _KINDS}


def full_name(kind: str, selector: str = "") -> str:
    return f"{kind}:{selector}" if selector else kind


def split_name(name: str) -> tuple[Kind, str | None]:
    """The kind and the selector of `kind` or `kind:selector`. Raises ClusterError for what a schedule cannot have."""
    kind_name, _, selector = name.partition(":")
    kind = KINDS.get(kind_name)
    if kind is None or not kind.is_real:
        known = ", ".join(one.name for one in _KINDS if one.is_real)
        raise ClusterError(f"{kind_name!r} is no fault of a real cluster: it is one of {known}")
    if selector and selector not in kind.selectors:
        hits = f"it is one of {', '.join(kind.selectors)}" if kind.selectors else "it has none"
        raise ClusterError(f"{selector!r} is no selector of {kind.name}: {hits}")
    return kind, selector or None


def simulated_names(*groups: Group) -> tuple[str, ...]:
    """The names under which the simulation has kinds of these groups, in their order here."""
    return tuple(
        full_name(kind.name, selector) for kind in _KINDS if kind.group in groups for selector in kind.simulated
    )

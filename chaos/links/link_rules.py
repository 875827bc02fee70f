"""Faults of links as rules of nftables and classes of the HTB queueing discipline, in the networks of their two ends.

A link is told by addresses and ports: requests come from the source's address to a port that the target listens on,
responses go back. A rule for either concerns no connection that the target opens itself. Packets are lost and refused
in the network of the target; each end narrows and delays what it sends, in a class of the link's own, which a packet
enters by its priority.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from .link import CutMode, Link, Stream

TABLE: Final = "links"
_ROOT: Final = "1:"
# Room for a window of ten segments; a queue that holds far more than a second of what passes is no link.
_QUEUE_BYTES_MIN: Final = 16_000
# Of a link that is delayed and not narrowed; a class has a rate.
_UNLIMITED: Final = "rate 100gbit"


class LinkRule(NamedTuple):
    """What becomes of packets. `stream` is what a cut takes away; the rest concerns both. Zero: nothing."""

    cut: CutMode | None = None
    stream: Stream = "both"
    loss_percent: int = 0
    kilobytes_s: int = 0
    latency_ms: int = 0
    jitter_ms: int = 0

    @property
    def is_shaped(self) -> bool:
        """Whether packets are held back, which takes a class."""
        return bool(self.kilobytes_s or self.latency_ms)


def table_of(
    end: str,
    rules: Mapping[Link, LinkRule],
    addresses: Mapping[str, str],
    ports: Mapping[str, Iterable[int]],
    classes: Mapping[Link, int],
) -> str:
    """All rules in the network of one end, in place of those that it had before; `ports` are those that nodes listen
    on, `classes` the numbers of links."""
    requests, responses, shaped = [], [], []
    for link, rule in rules.items():
        if end not in link:
            continue
        listening = ", ".join(map(str, ports[link.target]))
        comes = f"ip saddr {addresses[link.source]} tcp dport {{ {listening} }}"
        answers = f"ip daddr {addresses[link.source]} tcp sport {{ {listening} }}"
        asks = f"ip daddr {addresses[link.target]} tcp dport {{ {listening} }}"
        if end == link.target:
            requests += [f"{comes} {verdict}" for verdict in _verdicts(link, rule, "requests")]
            responses += [f"{answers} {verdict}" for verdict in _verdicts(link, rule, "responses")]
        if rule.is_shaped:
            sent = answers if end == link.target else asks
            shaped.append(f"{sent} meta priority set {_ROOT}{classes[link]:x}")
    return "\n".join(
        [
            # Made so that there is one to delete: what was there before goes in the same transaction.
            f"table inet {TABLE}",
            f"delete table inet {TABLE}",
            f"table inet {TABLE} {{",
            "chain requests { type filter hook input priority 0;",
            *requests,
            "}",
            "chain responses { type filter hook output priority 0;",
            *responses,
            "}",
            "chain shaped { type filter hook output priority 1;",
            *shaped,
            "}",
            "}",
            "",
        ]
    )


def disciplines_of(end: str, rules: Mapping[Link, LinkRule], classes: Mapping[Link, int], device: str) -> str:
    """The queueing disciplines of the device of one end, as `tc -batch` takes them; empty where nothing is shaped."""
    lines: list[str] = []
    for link, rule in rules.items():
        if end not in link or not rule.is_shaped:
            continue
        number = f"{classes[link]:x}"
        # A bucket that holds next to nothing: the first packets of an idle link have to wait as others do.
        limit = f"rate {rule.kilobytes_s * 1000}bps burst 1b cburst 1b" if rule.kilobytes_s else _UNLIMITED
        queue = f"bfifo limit {max(_QUEUE_BYTES_MIN, rule.kilobytes_s * 1000)}b"
        if rule.latency_ms:
            queue = f"netem delay {rule.latency_ms}ms {rule.jitter_ms}ms"
        lines += [
            f"class add dev {device} parent {_ROOT} classid {_ROOT}{number} htb {limit} quantum 1514",
            f"qdisc add dev {device} parent {_ROOT}{number} {queue}",
        ]
    if not lines:
        return ""
    # What is in no class is sent at once.
    return "\n".join([f"qdisc add dev {device} root handle {_ROOT} htb default 0", *lines, ""])


def lost_packets(listing: str) -> dict[Link, int]:
    """By link, how many packets were lost since its rules were made: `listing` is what `nft -j list table` prints."""
    lost: dict[Link, int] = {}
    for entry in json.loads(listing)["nftables"]:
        rule = entry.get("rule", {})
        for statement in rule.get("expr", ()):
            if "counter" in statement and rule.get("comment"):
                link = Link(*rule["comment"].split(">"))
                lost[link] = lost.get(link, 0) + int(statement["counter"]["packets"])
    return lost


def _verdicts(link: Link, rule: LinkRule, stream: Stream) -> Iterator[str]:
    """The first that concerns a packet decides."""
    if rule.cut is not None and rule.stream in ("both", stream):
        # Of a connection that stands and of a new one; the packets of the reset itself have to come through.
        yield "drop" if rule.cut == "silence" else "tcp flags & rst == 0 reject with tcp reset"
    if rule.loss_percent:
        yield f'numgen random mod 100 < {rule.loss_percent} counter drop comment "{link.source}>{link.target}"'

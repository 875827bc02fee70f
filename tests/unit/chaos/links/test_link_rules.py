"""Faults of links as rules of a firewall and queueing disciplines: which packets they concern; a heal leaves none."""

from __future__ import annotations

import json

import pytest

from penstock.chaos.links.link import Link
from penstock.chaos.links.link_rules import LinkRule, disciplines_of, lost_packets, table_of

ADDRESSES = {"1": "10.0.0.1", "2": "10.0.0.2", "client-0": "10.0.0.200"}
PORTS = {"1": (9092, 9093), "2": (9192,)}
LINK = Link("2", "1")
CLASSES = {LINK: 10, Link("client-0", "2"): 11}
REQUESTS = "ip saddr 10.0.0.2 tcp dport { 9092, 9093 } "
RESPONSES = "ip daddr 10.0.0.2 tcp sport { 9092, 9093 } "


def rules(rule: LinkRule, link: Link = LINK, target: str = "1") -> list[str]:
    lines = table_of(target, {link: rule}, ADDRESSES, PORTS, CLASSES).splitlines()
    return [line for line in lines if line.startswith("ip ")]


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        (LinkRule(cut="silence"), "drop"),
        (LinkRule(cut="reset"), "tcp flags & rst == 0 reject with tcp reset"),
        (LinkRule(cut="refusal"), "tcp flags & rst == 0 reject with tcp reset"),
        (LinkRule(loss_percent=30), 'numgen random mod 100 < 30 counter drop comment "2>1"'),
    ],
)
def test_a_rule_concerns_requests_and_responses_of_its_link(rule: LinkRule, verdict: str) -> None:
    assert rules(rule) == [REQUESTS + verdict, RESPONSES + verdict]


def test_one_direction_is_one_rule() -> None:
    assert rules(LinkRule(cut="silence", stream="requests")) == [f"{REQUESTS}drop"]
    assert rules(LinkRule(cut="silence", stream="responses")) == [f"{RESPONSES}drop"]


def test_links_to_other_nodes_are_not_in_a_node_s_table() -> None:
    assert rules(LinkRule(cut="silence"), Link("client-0", "2")) == []


def test_a_table_replaces_the_one_before() -> None:
    lines = table_of("1", {}, ADDRESSES, PORTS, CLASSES).splitlines()
    assert lines[:2] == ["table inet links", "delete table inet links"]


def test_a_cut_of_one_direction_leaves_the_loss_of_both() -> None:
    told = rules(LinkRule(cut="silence", stream="responses", loss_percent=5))
    assert [line.partition("}")[2].strip()[:6] for line in told] == ["numgen", "drop", "numgen"]


def test_both_ends_hold_back_what_they_send_on_a_narrow_link() -> None:
    rule = LinkRule(kilobytes_s=8)
    assert rules(rule) == [f"{RESPONSES}meta priority set 1:a"]
    assert rules(rule, target="2") == ["ip daddr 10.0.0.1 tcp dport { 9092, 9093 } meta priority set 1:a"]
    assert rules(rule, target="client-0") == []
    for end in ("1", "2"):
        root, of_link, queue = disciplines_of(end, {LINK: rule}, CLASSES, "eth0").splitlines()
        assert root == "qdisc add dev eth0 root handle 1: htb default 0"
        assert of_link.startswith("class add dev eth0 parent 1: classid 1:a htb rate 8000bps ")
        assert queue == "qdisc add dev eth0 parent 1:a bfifo limit 16000b"
    assert disciplines_of("client-0", {LINK: rule}, CLASSES, "eth0") == ""


def test_a_link_that_is_late_and_narrow_is_both() -> None:
    rule = LinkRule(kilobytes_s=8, latency_ms=200, jitter_ms=50)
    _, of_link, queue = disciplines_of("1", {LINK: rule}, CLASSES, "eth0").splitlines()
    assert " rate 8000bps " in of_link
    assert queue == "qdisc add dev eth0 parent 1:a netem delay 200ms 50ms"
    _, of_link, _ = disciplines_of("1", {LINK: LinkRule(latency_ms=200)}, CLASSES, "eth0").splitlines()
    assert " rate 100gbit " in of_link


def test_nothing_is_shaped_where_packets_are_lost_or_cut() -> None:
    assert disciplines_of("1", {LINK: LinkRule(cut="silence", loss_percent=5)}, CLASSES, "eth0") == ""


def test_packets_that_were_lost_in_both_directions_are_counted_by_link() -> None:
    def rule(packets: int, comment: str | None) -> object:
        told = {"expr": [{"counter": {"packets": packets, "bytes": 60}}, {"drop": None}]}
        return {"rule": told | ({} if comment is None else {"comment": comment})}

    listing = {"nftables": [{"metainfo": {}}, rule(2, "2>1"), rule(3, "2>1"), rule(4, "client-0>1"), rule(5, None)]}
    assert lost_packets(json.dumps(listing)) == {LINK: 5, Link("client-0", "1"): 4}

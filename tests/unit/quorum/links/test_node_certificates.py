"""Which nodes a certificate names."""

import pytest

from penstock.protocol.errors import ConfigError
from penstock.protocol.ids import NodeId
from penstock.quorum.links.rules.node_certificates import NodeCertificates
from penstock.quorum.links.rules.peer_proof import PeerRefused


def certificate(*names: tuple[str, str], common_name: str = "") -> dict[str, object]:
    """As Python's `ssl` tells it."""
    return {"subject": ((("organizationName", "node-9"),), (("commonName", common_name),)), "subjectAltName": names}


@pytest.mark.parametrize(
    ("name", "shown", "ids"),
    [
        ("node-{id}", certificate(common_name="node-1"), {1}),
        ("node-{id}", certificate(("DNS", "node-1"), ("DNS", "node-20"), ("DNS", "other")), {1, 20}),
        ("node-{id}.kafka.svc", certificate(("DNS", "NODE-3.Kafka.svc")), {3}),
        ("node-{id}.kafka.svc", certificate(("DNS", "node-3xkafka.svc"), ("DNS", "node-3.kafka.svc.evil.org")), set()),
        ("node-{id}", certificate(("DNS", "node-01"), ("DNS", "node-"), ("DNS", "node-*"), ("DNS", "xnode-1")), set()),
        ("node-{id}", certificate(("DNS", "node-1\n"), ("DNS", "node-\u0661"), ("DNS", "node--1")), set()),
        ("node-{id}.kafka", certificate(("DNS", "node-1.\u212aafka"), common_name="node-2.\u212aafka"), set()),
        ("node-{id}", certificate(("URI", "node-1"), ("email", "node-1"), ("IP Address", "node-1")), set()),
        ("spiffe://a/node/{id}", certificate(("URI", "spiffe://a/node/0"), ("DNS", "spiffe://a/node/1")), {0}),
        ("spiffe://a/node/{id}", certificate(("URI", "spiffe://A/node/0"), common_name="spiffe://a/node/1"), set()),
        ("{id}", certificate(common_name="7"), {7}),
    ],
)
def test_a_whole_name_says_which_node_it_is(name: str, shown: dict[str, object], ids: set[int]) -> None:
    assert NodeCertificates("cluster.certificate.name", name).node_ids(shown) == ids


def test_a_peer_is_refused_as_any_node_but_those_that_its_certificate_names() -> None:
    certificates = NodeCertificates("cluster.certificate.name", "node-{id}")
    shown = certificate(("DNS", "node-1"), ("DNS", "node-2"))
    certificates.check(NodeId(1), shown)
    certificates.check(NodeId(2), shown)
    with pytest.raises(PeerRefused, match=r"says that it is node 3, but its certificate does not have the name node-3"):
        certificates.check(NodeId(3), shown)
    with pytest.raises(PeerRefused, match=r"it is node 1, but shows no certificate with the name node-1"):
        certificates.check(NodeId(1), None)


@pytest.mark.parametrize("name", ["node", "{id}-{id}"])
def test_a_rule_has_one_place_for_the_number(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^cluster\.certificate\.name must hold \{id\} once"):
        NodeCertificates("cluster.certificate.name", name)

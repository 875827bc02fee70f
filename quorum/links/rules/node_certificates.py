"""Which node a certificate names: `cluster.certificate.name`.

The property is a name with `{id}` where the number of the node is, for instance `node-{id}.kafka.internal`. A
certificate names every node whose name is among its DNS names and its subject's common names, without regard to case. A
property with `://` in it is looked for among the URIs instead (`spiffe://internal/kafka/node/{id}`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....protocol.errors import ConfigError
from ....protocol.ids import NodeId
from .peer_proof import PeerRefused

ID: Final = "{id}"
_NODE_ID: Final = "(0|[1-9][0-9]{0,9})"


class NodeCertificates:
    """The rule of one cluster. Certificates are as Python's `ssl` tells them: what was verified, as a mapping."""

    def __init__(self, key: str, name: str) -> None:
        """Raises ConfigError about the property `key`."""
        if name.count(ID) != 1:
            raise ConfigError(f"{key} must hold {ID} once, where a certificate has the node's number, but is {name!r}.")
        self._name = name
        self._is_uri = "://" in name
        before, after = map(re.escape, name.split(ID))
        # Without ASCII, the sign for Kelvin would be a k.
        self._pattern = re.compile(f"{before}{_NODE_ID}{after}", re.ASCII if self._is_uri else re.ASCII | re.IGNORECASE)

    def node_ids(self, certificate: Mapping[str, Any]) -> frozenset[NodeId]:
        """All nodes that it names."""
        names = _uris(certificate) if self._is_uri else _host_names(certificate)
        return frozenset(NodeId(int(match[1])) for name in names if (match := self._pattern.fullmatch(name)))

    def check(self, node_id: NodeId, certificate: Mapping[str, Any] | None) -> None:
        """Raise PeerRefused unless a peer that says it is this node has shown a certificate that says so too."""
        wanted = self._name.replace(ID, str(node_id))
        if not certificate:
            raise PeerRefused(f"it says that it is node {node_id}, but shows no certificate with the name {wanted}")
        if node_id not in self.node_ids(certificate):
            raise PeerRefused(f"it says that it is node {node_id}, but its certificate does not have the name {wanted}")


def _host_names(certificate: Mapping[str, Any]) -> Iterator[str]:
    for kind, name in certificate.get("subjectAltName", ()):
        if kind == "DNS":
            yield name
    for relative_name in certificate.get("subject", ()):
        for kind, name in relative_name:
            if kind == "commonName":
                yield name


def _uris(certificate: Mapping[str, Any]) -> Iterator[str]:
    for kind, name in certificate.get("subjectAltName", ()):
        if kind == "URI":
            yield name

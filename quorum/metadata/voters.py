"""The voters of the quorum, as `controller.quorum.voters` names them: `1@host:9093,2@host:9093`."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...protocol.errors import ConfigError
from ...protocol.ids import NodeId


class Voter(NamedTuple):
    """Where a controller listens."""

    id: NodeId
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.id}@{host}:{self.port}"


def parse_voters(texts: Sequence[str]) -> Mapping[NodeId, Voter]:
    """Return the voters by id. Raises ConfigError."""
    voters: dict[NodeId, Voter] = {}
    for text in texts:
        voter_id, _, address = text.strip().partition("@")
        host, _, port = address.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        if not voter_id.isdecimal() or not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ConfigError(f"controller.quorum.voters holds id@host:port, but one entry is {text.strip()!r}.")
        voter = Voter(NodeId(int(voter_id)), host, int(port))
        if voter.id in voters:
            raise ConfigError(f"controller.quorum.voters names node {voter.id} twice.")
        voters[voter.id] = voter
    return voters

"""What a node says of others that are none of its cluster, where it thought to find one."""

from uuid import UUID

import pytest
from kio.schema.api_versions.v0.response import ApiVersionsResponse
from kio.schema.errors import ErrorCode as KioErrorCode
from scripted_broker import Answer, behaved, run

from penstock.broker.cluster.peers import PeerConnector
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import CorruptData
from penstock.protocol.ids import NodeId
from penstock.protocol.messages import RequestHeader, encode_response
from penstock.quorum.links.rules.peer_proof import NONCE_BYTES, PeerHello


def silent_about_versions(header: RequestHeader) -> bytes:
    error = KioErrorCode.unsupported_version if header.api_version else KioErrorCode.unknown_server_error
    refusal = ApiVersionsResponse(error_code=error, api_keys=())
    return encode_response(ApiKey.API_VERSIONS, 0, header.correlation_id, refusal)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (behaved({3: (0, 9), 18: (0, 4)}), "serves SaslHandshake not at all"),
        (behaved({17: (2, 3), 18: (0, 4)}), "serves SaslHandshake 2 to 3"),
        (silent_about_versions, "does not tell its versions"),
    ],
)
def test_another_broker_at_the_address_of_a_node_is_not_used(answer: Answer, said: str) -> None:
    """Those who dial try again later, or elsewhere; no other error is expected of a connection."""
    hello = PeerHello(node_id=NodeId(1), directory_id=UUID(int=9), cluster_id=None, nonce=bytes(NONCE_BYTES))
    peers = PeerConnector(secret=b"hush", hello=lambda: hello)

    async def scenario(host: str, port: int) -> None:
        with pytest.raises(CorruptData, match=f"{host}:{port} is no node of a cluster like this: .*{said}"):
            await peers.connect(host, port, timeout_ms=10_000)

    run(answer, scenario)

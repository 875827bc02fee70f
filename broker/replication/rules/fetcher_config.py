"""How this node fetches as a follower."""

from msgspec import Struct


class FetcherConfig(Struct, frozen=True, kw_only=True):
    """Kafka's properties `replica.fetch.…`, and `replica.socket.timeout.ms`."""

    wait_ms_max: int
    bytes_min: int
    bytes_max: int
    response_bytes_max: int
    backoff_ms: int
    timeout_ms: int

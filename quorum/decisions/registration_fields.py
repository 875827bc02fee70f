"""What registrations of brokers and of controllers say in the same words: where they listen, and what they support."""

from collections.abc import Iterable
from typing import Final, Protocol

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.security_protocols import SecurityProtocol
from ..metadata.records import Endpoint, SupportedFeature

_SECURITY_PROTOCOLS: Final = frozenset(map(int, SecurityProtocol))


class RequestedListener(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def security_protocol(self) -> int: ...


class RequestedFeature(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def min_supported_version(self) -> int: ...
    @property
    def max_supported_version(self) -> int: ...


def endpoints_of(listeners: Iterable[RequestedListener]) -> tuple[Endpoint, ...]:
    """Raise KafkaError(INVALID_REGISTRATION) when one speaks a security protocol that there is not."""
    endpoints = []
    for listener in listeners:
        if listener.security_protocol not in _SECURITY_PROTOCOLS:
            message = f"Listener {listener.name} has the unknown security protocol {listener.security_protocol}"
            raise KafkaError(ErrorCode.INVALID_REGISTRATION, message)
        endpoint = Endpoint(
            name=listener.name,
            host=listener.host,
            port=listener.port,
            security_protocol=listener.security_protocol,
        )
        endpoints.append(endpoint)
    return tuple(endpoints)


def features_of(features: Iterable[RequestedFeature]) -> tuple[SupportedFeature, ...]:
    return tuple(
        [
            SupportedFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in features
        ]
    )

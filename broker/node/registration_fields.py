"""What the registrations of a broker and of a controller have in common: where a node listens, and what it supports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from kio.static.primitive import i16, u16

from ...protocol.security_protocols import SecurityProtocol
from ...quorum.metadata.features import FEATURES
from ..configuration.listener_config import ListenerConfig

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class ListenerType(Protocol[T_co]):
    def __call__(self, *, name: str, host: str, port: u16, security_protocol: i16) -> T_co: ...


class FeatureType(Protocol[T_co]):
    def __call__(self, *, name: str, min_supported_version: i16, max_supported_version: i16) -> T_co: ...


def registered_listeners(make: ListenerType[T], listeners: Iterable[ListenerConfig]) -> tuple[T, ...]:
    """As the request's own class `make` says them."""
    return tuple(
        make(
            name=listener.name,
            host=listener.host,
            port=u16(listener.port),
            security_protocol=i16(SecurityProtocol[listener.security_protocol]),
        )
        for listener in listeners
    )


def registered_features(make: FeatureType[T]) -> tuple[T, ...]:
    """As the request's own class `make` says them."""
    return tuple(
        make(
            name=name,
            min_supported_version=i16(feature.supported.min_level),
            max_supported_version=i16(feature.supported.max_level),
        )
        for name, feature in FEATURES.items()
    )

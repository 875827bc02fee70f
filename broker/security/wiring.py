"""What a node's configuration asks for: its authorizer, and what clients prove who they are by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from ...storage.disk.files import Files
from ..cluster.metadata_cache import MetadataCache
from ..configuration.bearer_config import BearerConfig
from ..configuration.node_config import NodeConfig
from ..network.peer_log import PeerLog
from ..network.request import Authorizer
from .authorizer import AclAuthorizer, logger
from .http_identities import HttpIdentities
from .rules.bearer import VerifyToken, no_tokens
from .rules.sasl_mechanisms import CredentialSources, SaslMechanisms

if TYPE_CHECKING:
    from .key_sets import KeySets


def authorizer_of(config: NodeConfig, metadata: MetadataCache, loop: asyncio.AbstractEventLoop) -> Authorizer | None:
    """Returns None where everyone may do everything. Each listener has its own: what is kept is of its clients."""
    if config.authorizer is None:
        return None
    return AclAuthorizer(config.authorizer, lambda: metadata.image, PeerLog(loop, logger))


class Identities(Struct, frozen=True, kw_only=True):
    """What the clients of all listeners prove who they are by."""

    mechanisms: SaslMechanisms
    http: HttpIdentities
    key_sets: KeySets | None
    """Of tokens, to be loaded and watched; None on a node without OAUTHBEARER."""


def identities_of(
    config: NodeConfig,
    files: Files,
    metadata: MetadataCache,
    random_bytes: Callable[[int], bytes],
    wall_clock_ms: Callable[[], int],
    loop: asyncio.AbstractEventLoop,
) -> Identities:
    """Raises ConfigError. `random_bytes` is for secrets."""
    key_sets: KeySets | None = None
    if any(one.bearer is not None for sasl in config.sasl.values() for one in sasl.mechanisms.values()):
        # Only a node with tokens loads it.
        from .key_sets import KeySets

        key_sets = KeySets(files, loop, wall_clock_ms)

    def token_verifier(bearer: BearerConfig) -> VerifyToken:
        return no_tokens if key_sets is None else key_sets.verifier(bearer)

    sources = CredentialSources(
        image=lambda: metadata.image,
        random_bytes=random_bytes,
        wall_clock_ms=wall_clock_ms,
        token_verifier=token_verifier,
        cluster_secret=config.cluster_secret,
        tokens=config.delegation_tokens,
    )
    mechanisms = SaslMechanisms(config.sasl, sources)
    http = HttpIdentities(
        mechanisms, sources, PeerLog(loop), loop, refusal_delay_ms=config.failed_authentication_delay_ms
    )
    return Identities(mechanisms=mechanisms, http=http, key_sets=key_sets)

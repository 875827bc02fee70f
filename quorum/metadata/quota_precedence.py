"""Which quota of the metadata a client has: the most specific entity that names its user or its client id. Pure.

Kafka: `ClientQuotaManager.DefaultQuotaCallback`. The first entity of these that has a value for a key decides (KIP-55,
KIP-546):

    entity                         who shares the quota
    user, client id                that user with that client id
    user, default client id        that user with each client id of its own
    user                           all clients of the user
    default user, client id        each user with that client id
    default user, default client   each user with each client id
    default user                   all clients of each user
    client id                      all users with the client id
    default client id              all users with each client id

A client without a client id has the quotas of its user alone.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ...protocol.host_addresses import usual_address
from .security_image import QuotaEntity, Quotas

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"


class QuotaClients(NamedTuple):
    """The clients that share one quota: an empty `user` or `client_id` is any."""

    user: str
    client_id: str


class AppliedQuota(NamedTuple):
    """The value of a key that holds for a client, and with whom the client shares it."""

    bound: float
    clients: QuotaClients


def applied_quota(
    quotas: Mapping[QuotaEntity, Quotas], key: str, user: str, client_id: str | None
) -> AppliedQuota | None:
    """None without a quota for the client."""
    for entity, clients in _entities(user, client_id or ""):
        values = quotas.get(entity)
        if values is not None:
            bound = values.get(key)
            if bound is not None:
                return AppliedQuota(bound, clients)
    return None


def address_quotas(quotas: Mapping[QuotaEntity, Quotas]) -> Mapping[str | None, float]:
    """Connections a second that an address may open (KIP-612), by the address as it is usually written; one of IPv4
    that is mapped to IPv6 is that of IPv4. None is the default for all others."""
    bounds: dict[str | None, float] = {}
    for entity, values in quotas.items():
        kind, name = entity[0]
        bound = values.get(CONNECTION_CREATION_RATE)
        if kind == IP and bound is not None:
            bounds[None if name is None else usual_address(name)] = bound
    return bounds


def has_quota_of_clients(quotas: Mapping[QuotaEntity, Quotas]) -> bool:
    """Whether any user or client id has a quota."""
    return any(entity[0][0] != IP for entity in quotas)


def _entities(user: str, client_id: str) -> Sequence[tuple[QuotaEntity, QuotaClients]]:
    """In the order of their precedence."""
    of_user = QuotaClients(user, "")
    named: QuotaEntity = ((USER, user),)
    default: QuotaEntity = ((USER, None),)
    if not client_id:
        return (named, of_user), (default, of_user)
    of_both, of_client = QuotaClients(user, client_id), QuotaClients("", client_id)
    return (
        (((CLIENT_ID, client_id), (USER, user)), of_both),
        (((CLIENT_ID, None), (USER, user)), of_both),
        (named, of_user),
        (((CLIENT_ID, client_id), (USER, None)), of_both),
        (((CLIENT_ID, None), (USER, None)), of_both),
        (default, of_user),
        (((CLIENT_ID, client_id),), of_client),
        (((CLIENT_ID, None),), of_client),
    )

"""Changing quotas of clients. Kafka: `ClientQuotaControlManager`.

AlterClientQuotas, versions 0-1 (KIP-546; addresses KIP-612, changes of topics KIP-599). Checks, codes and sentences are
those of Apache Kafka 4.3, but for names of hosts: a quota of an address names the address. Each entity has its own
outcome; what is as it was already needs no record.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, OpData
from kio.schema.alter_client_quotas.v1.request import EntityData as AlteredPart
from kio.schema.alter_client_quotas.v1.request import EntryData as Alteration
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse, EntityData, EntryData

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.host_addresses import is_address
from ...protocol.messages import NO_THROTTLE
from ..metadata.image import MetadataImage
from ..metadata.quota_precedence import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from ..metadata.security_image import QuotaEntity
from ..metadata.security_records import ClientQuotaEntity, ClientQuotaRecord
from .answers import Refusal, refusal, wire_code
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest

_LONG_MAX: Final = float(2**63 - 1)
_INT_MAX: Final = float(2**31 - 1)
_INTEGERS: Final[Mapping[str, tuple[str, float]]] = {
    PRODUCER_BYTE_RATE: ("a LONG", _LONG_MAX),
    CONSUMER_BYTE_RATE: ("a LONG", _LONG_MAX),
    CONNECTION_CREATION_RATE: ("an INT", _INT_MAX),
}
"""Keys whose values are whole numbers: Kafka's type and the largest value."""
_FRACTION_MAX: Final = 1e-6
_OF_CLIENTS: Final = frozenset({PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE})
_OF_ADDRESSES: Final = frozenset({CONNECTION_CREATION_RATE})


def alter_client_quotas(
    image: MetadataImage, request: AlterClientQuotasRequest, _context: DecisionContext
) -> ControllerResult[AlterClientQuotasResponse]:
    """Set and remove quotas of those entities that are valid."""
    records: list[ClientQuotaRecord] = []
    outcomes: dict[QuotaEntity, Refusal] = {}
    for alteration in request.entries:
        entity = _entity(alteration.entity)
        try:
            if entity in outcomes:
                raise _invalid(f"Ignoring duplicate entity {_text(entity)}")
            changed = _alter(image, entity, alteration)
        except KafkaError as error:
            outcomes[entity] = refusal(error)
        else:
            outcomes[entity] = Refusal(ErrorCode.NONE, None)
            records += changed
    return ControllerResult(
        records=() if request.validate_only else tuple(records),
        response=AlterClientQuotasResponse(
            throttle_time=NO_THROTTLE, entries=tuple([_answer(entity, why) for entity, why in outcomes.items()])
        ),
    )


def _entity(parts: Sequence[AlteredPart]) -> QuotaEntity:
    """Of a type that is there twice the last name counts."""
    return tuple(sorted({part.entity_type: part.entity_name for part in parts}.items()))


def _alter(image: MetadataImage, entity: QuotaEntity, alteration: Alteration) -> list[ClientQuotaRecord]:
    changes: dict[str, float | None] = {}
    for change in alteration.ops:
        if change.key in changes:
            # Apache Kafka means the key, and says it of the entity.
            raise _invalid(f"Ignoring duplicate entity {_text(entity)}")
        changes[change.key] = _value(change)
    _check_entity(entity)
    keys = _keys(entity)
    current = image.client_quotas.get(entity, {})
    records = []
    named = tuple([ClientQuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity])
    for key, value in changes.items():
        if value is None:
            if key in current:
                records.append(ClientQuotaRecord(entity=named, key=key, remove=True))
            continue
        _check_value(keys, key, value)
        if current.get(key) != value:
            records.append(ClientQuotaRecord(entity=named, key=key, value=value))
    return records


def _value(change: OpData) -> float | None:
    return None if change.remove else float(change.value)


def _check_entity(entity: QuotaEntity) -> None:
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")


def _keys(entity: QuotaEntity) -> frozenset[str]:
    """The keys that such an entity may have."""
    kinds = dict(entity)
    if IP not in kinds:
        return _OF_CLIENTS
    if len(kinds) > 1:
        raise _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = kinds[IP]
    if address is not None and not is_address(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return _OF_ADDRESSES


def _check_value(keys: frozenset[str], key: str, value: float) -> None:
    if key not in keys:
        raise _invalid(f"Invalid configuration key {key}")
    # What is no number, or has no end, could not be counted with.
    if not value > 0.0 or not isfinite(value):
        raise _invalid(f"Quota {key} must be greater than 0")
    if key not in _INTEGERS:
        return
    kind, most = _INTEGERS[key]
    if value > most:
        raise _invalid(f"Proposed value for {key} is too large for {kind}.")
    if value % 1.0 > _FRACTION_MAX:
        raise _invalid(f"{key} cannot be a fractional value.")


def _text(entity: QuotaEntity) -> str:
    """As Apache Kafka prints it."""
    parts = ", ".join(f"{kind}={name or 'null'}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _answer(entity: QuotaEntity, why: Refusal) -> EntryData:
    return EntryData(
        error_code=wire_code(why.code),
        error_message=why.message,
        entity=tuple([EntityData(entity_type=kind, entity_name=name) for kind, name in entity]),
    )


ALTER_CLIENT_QUOTAS: Final = ControllerRequest(ApiKey.ALTER_CLIENT_QUOTAS, alter_client_quotas)

"""`penstock quota …`: how much users, client ids and addresses may use (KIP-546, KIP-612).

producer_byte_rate, consumer_byte_rate    bytes a second, of one broker
request_percentage                        of the time of one thread, so 100 is a whole one
controller_mutation_rate                  partitions created or deleted a second (KIP-599)
connection_creation_rate                  connections a second, of an address
"""

from __future__ import annotations

from math import isfinite, nan
from typing import Any, Final

import click
from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kio.schema.describe_client_quotas.v1.request import ComponentData, DescribeClientQuotasRequest
from kio.static.primitive import f64, i8

from ..assignments import parse_assignments
from ..bootstrap import Bootstrap, bootstrap_options
from ..options import Command, json_option, with_options
from ..terminal import print_json, print_table, say
from .questions import ask, check

KEYS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
_EXACT: Final = 0
_DEFAULT: Final = 1
_DEFAULT_NAME: Final = "<default>"

Entity = dict[str, str | None]
"""Of user, client-id and ip those that are meant; None is the default of all that have no quota of their own."""


def _entity_options(command: Command) -> Command:
    return with_options(
        command,
        click.option("--user", metavar="NAME"),
        click.option("--user-default", is_flag=True, help="Every user without a quota of his own."),
        click.option("--client-id", metavar="ID"),
        click.option("--client-id-default", is_flag=True, help="Every client id without a quota of its own."),
        click.option("--ip", metavar="ADDRESS"),
        click.option("--ip-default", is_flag=True, help="Every address without a quota of its own."),
    )


@click.group()
def quota() -> None:
    """Set, list and remove quotas of users, client ids and addresses."""


@quota.command("set")
@click.argument("values", metavar="KEY=NUMBER…", nargs=-1, required=True, callback=parse_assignments)
@_entity_options
@json_option
@bootstrap_options
def set_(bootstrap: Bootstrap, /, values: dict[str, str], as_json: bool, **options: Any) -> None:
    """Set quotas: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate,
    connection_creation_rate."""
    operations = tuple(OpData(key=key, value=_number(key, text), remove=False) for key, text in values.items())
    _alter(bootstrap, _entity(options), operations)
    _report(_entity(options), {one.key: float(one.value) for one in operations}, as_json=as_json)


@quota.command()
@click.argument("keys", metavar="KEY…", nargs=-1, required=True, type=click.Choice(KEYS))
@_entity_options
@json_option
@bootstrap_options
def remove(bootstrap: Bootstrap, /, keys: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Remove quotas: those of the default are in effect then."""
    entity = _entity(options)
    _alter(bootstrap, entity, tuple(OpData(key=key, value=f64(0.0), remove=True) for key in keys))
    if as_json:
        print_json({"entity": entity, "removed": list(keys)})
    else:
        say(f"{_name(entity)} has no {' and '.join(keys)} of its own any more.")


@quota.command("list")
@_entity_options
@json_option
@bootstrap_options
def list_(bootstrap: Bootstrap, /, as_json: bool, **options: Any) -> None:
    """List quotas, all of them unless an entity is named: then what was set with exactly these options."""
    entity = _entity(options, is_needed=False)
    components = tuple(
        ComponentData(entity_type=kind, match_type=i8(_DEFAULT if name is None else _EXACT), match=name)
        for kind, name in entity.items()
    )
    answer = ask(bootstrap, DescribeClientQuotasRequest(components=components, strict=bool(components)))
    check(answer.error_code, answer.error_message)
    found = [
        {
            "entity": {part.entity_type: part.entity_name for part in entry.entity},
            "quotas": {value.key: float(value.value) for value in sorted(entry.values, key=lambda one: str(one.key))},
        }
        for entry in answer.entries or ()
    ]
    found.sort(key=lambda one: _name(one["entity"]))
    if as_json:
        print_json({"quotas": found})
    elif found:
        rows = [(_name(one["entity"]), key, _shown(value)) for one in found for key, value in one["quotas"].items()]
        print_table(("whose", "quota", "value"), rows)
    else:
        say("There are no such quotas.")


def _entity(options: dict[str, Any], *, is_needed: bool = True) -> Entity:
    """Raises UsageError."""
    entity: Entity = {}
    for option, kind in (("user", "user"), ("client_id", "client-id"), ("ip", "ip")):
        if options[option] is not None and options[f"{option}_default"]:
            raise click.UsageError(f"--{kind} and --{kind}-default exclude each other.")
        if options[option] is not None or options[f"{option}_default"]:
            entity[kind] = options[option]
    if "ip" in entity and len(entity) > 1:
        raise click.UsageError("An address has quotas of its own: --ip goes with neither user nor client id.")
    if is_needed and not entity:
        raise click.UsageError("Whose quota: --user, --client-id, --ip or a default of them?")
    return entity


def _number(key: str, text: str) -> f64:
    if key not in KEYS:
        raise click.UsageError(f"{key} is no quota; quotas are {', '.join(KEYS)}.")
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not isfinite(number):
        raise click.UsageError(f"{key} is a number, but got {text!r}.")
    return f64(number)


def _alter(bootstrap: Bootstrap, entity: Entity, operations: tuple[OpData, ...]) -> None:
    parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items())
    request = AlterClientQuotasRequest(entries=(EntryData(entity=parts, ops=operations),), validate_only=False)
    for entry in ask(bootstrap, request).entries:
        check(entry.error_code, entry.error_message, about=_name(entity))


def _report(entity: Entity, quotas: dict[str, float], *, as_json: bool) -> None:
    if as_json:
        print_json({"entity": entity, "quotas": quotas})
    else:
        say(f"{_name(entity)}: {', '.join(f'{key} {_shown(value)}' for key, value in quotas.items())}.")


def _name(entity: Entity) -> str:
    return ", ".join(f"{kind} {_DEFAULT_NAME if name is None else name}" for kind, name in entity.items())


def _shown(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)

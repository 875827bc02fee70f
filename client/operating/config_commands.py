"""`penstock config`: configs of topics, brokers, groups, client metrics and loggers, and what they mean."""

from __future__ import annotations

import textwrap
from collections.abc import Container
from typing import TYPE_CHECKING, Final, NamedTuple

import click
import msgspec

from ...protocol.rest.described_configs import ConfigChanges, ConfigList, DescribedConfig
from ..assignments import parse_assignments
from ..client_properties import is_secret
from ..terminal import print_json, print_table, say
from .admin_options import admin_options, check_quorum, json_option

if TYPE_CHECKING:
    from ..admin import Admin

ALL_BROKERS: Final = "brokers"
TYPES: Final = ("topic", "broker", "group", "client-metrics", "broker-logger")
SYNTAX: Final = "topic/NAME, broker/ID, brokers (all of them), group/NAME, client-metrics/NAME or broker-logger/ID"
_WIDTH: Final = 96


class Resource(NamedTuple):
    """What has configs; the name of all brokers together is empty."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}" if self.name else "all brokers"


def parse_resource(text: str) -> Resource:
    """Raises ValueError."""
    if text == ALL_BROKERS:
        return Resource("broker", "")
    kind, slash, name = text.partition("/")
    if kind not in TYPES or not slash or not name:
        raise ValueError(f"{text!r} is not {SYNTAX}.")
    return Resource(kind, name)


def _resource_of(context: click.Context, parameter: click.Parameter, text: str) -> Resource:
    try:
        return parse_resource(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx=context, param=parameter) from error


_resource = click.argument("resource", metavar="RESOURCE", callback=_resource_of)


@click.group(epilog=f"RESOURCE is {SYNTAX}.")
def config() -> None:
    """Look at configs and change them while the cluster runs."""


@config.command()
@_resource
@click.argument("key", metavar="KEY")
@json_option
@admin_options
def get(admin: Admin, resource: Resource, key: str, as_json: bool) -> None:
    """Print the value in effect of one config."""
    one = _one(_described(admin, resource, keys=(key,), has_documentation=False), resource, key)
    if as_json:
        print_json(msgspec.to_builtins(one))
    else:
        click.echo("" if one.value is None else one.value)


@config.command()
@_resource
@click.argument("keys", metavar="[KEY…]", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Also configs that have their default.")
@click.option("--doc", "has_documentation", is_flag=True, help="With what each config means, and may be.")
@json_option
@admin_options
def describe(
    admin: Admin, resource: Resource, keys: tuple[str, ...], is_all: bool, has_documentation: bool, as_json: bool
) -> None:
    """Show configs with their source and default: those that were set, those named, or all."""
    found = _described(admin, resource, keys=keys, has_documentation=has_documentation)
    for key in keys:
        _one(found, resource, key)
    shown = [one for one in found.configs if keys or is_all or not one.is_default]
    if as_json:
        print_json({**msgspec.to_builtins(found), "configs": msgspec.to_builtins(shown)})
    elif not shown:
        say(f"No config of {resource} was set; --all shows their defaults.")
    elif has_documentation:
        click.echo("\n\n".join("\n".join(documentation_lines(one)) for one in shown))
    else:
        print_table(("config", "value", "default", "source"), (_row(one) for one in shown))


@config.command("set")
@_resource
@click.argument("values", metavar="KEY=VALUE…", nargs=-1, callback=parse_assignments)
@click.option(
    "--from-file",
    "files",
    metavar="KEY=FILE",
    multiple=True,
    callback=parse_assignments,
    help="The value is what the file has, - is standard input: for passwords, which others could read here.",
)
@click.option("--dry-run", is_flag=True, help="Only check.")
@json_option
@admin_options
def set_(
    admin: Admin, resource: Resource, values: dict[str, str], files: dict[str, str], dry_run: bool, as_json: bool
) -> None:
    """Set configs: all of them, or none where one is refused."""
    shown = [key for key in values if is_secret(key)]
    if shown:
        raise click.UsageError(
            f"{shown[0]} is a password, and every user of this machine can read command lines: --from-file "
            f"{shown[0]}=FILE."
        )
    if not values and not files:
        raise click.UsageError("Which config: KEY=VALUE or --from-file KEY=FILE?")
    hidden = {key: _content(path) for key, path in files.items()}
    _alter(admin, resource, ConfigChanges(set={**values, **hidden}, validate_only=dry_run), hidden, as_json=as_json)


@config.command()
@_resource
@click.argument("keys", metavar="KEY…", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Only check.")
@json_option
@admin_options
def unset(admin: Admin, resource: Resource, keys: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Unset configs: what the resource has without them is in effect then."""
    _alter(admin, resource, ConfigChanges(unset=list(keys), validate_only=dry_run), (), as_json=as_json)


def documentation_lines(one: DescribedConfig) -> list[str]:
    """A config as a page of a manual shows it."""
    facts = [f"source {_source(one)}", f"default {_value(one.default)}", one.type.lower()]
    if one.valid_values:
        facts.append(f"valid: {one.valid_values}")
    if one.update_mode:
        facts.append(one.update_mode)
    lines = [f"{one.name}={_shown(one)}", *textwrap.wrap("; ".join(facts), _WIDTH, initial_indent="  ")]
    return lines + textwrap.wrap(
        one.documentation or "No documentation.", _WIDTH, initial_indent="  ", subsequent_indent="  "
    )


def _described(admin: Admin, resource: Resource, *, keys: tuple[str, ...], has_documentation: bool) -> ConfigList:
    wanted = ",".join(keys) or None
    if not resource.name:
        return admin.describe_broker_defaults(keys=wanted, documentation=has_documentation)
    return admin.describe_configs(resource.type, resource.name, keys=wanted, documentation=has_documentation)


def _one(found: ConfigList, resource: Resource, key: str) -> DescribedConfig:
    for one in found.configs:
        if one.name == key:
            return one
    raise click.ClickException(f"There is no config {key!r} of {resource}.")


def _content(path: str) -> str:
    """Without the line break at the end that editors put there. Raises ClickException."""
    try:
        with click.open_file(path, encoding="utf-8") as file:
            return str(file.read()).removesuffix("\n")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError:
        raise click.ClickException(f"{path} is not UTF-8.") from None


def _alter(admin: Admin, resource: Resource, changes: ConfigChanges, hidden: Container[str], *, as_json: bool) -> None:
    """The values of `hidden` keys are not printed."""
    # Loggers are of one node: no metadata.
    if resource.type != "broker-logger":
        check_quorum(admin)
    if resource.name:
        admin.alter_configs(resource.type, resource.name, changes)
    else:
        admin.alter_broker_defaults(changes)
    if as_json:
        told = msgspec.to_builtins(changes)
        told["set"] = {key: None if key in hidden else value for key, value in changes.set.items()}
        print_json({"resource_type": resource.type, "resource_name": resource.name, **told})
    else:
        say(f"{'Could alter' if changes.validate_only else 'Altered'} configs of {resource}.")


def _row(one: DescribedConfig) -> tuple[str, str, str, str]:
    return one.name, _shown(one), _value(one.default), _source(one)


def _shown(one: DescribedConfig) -> str:
    return "(hidden)" if one.is_sensitive else _value(one.value)


def _value(value: str | None) -> str:
    return "-" if value is None else value or '""'


def _source(one: DescribedConfig) -> str:
    return one.source.lower().replace("_", " ").removesuffix(" config")

"""`penstock acl …`: who may do what (KIP-11, KIP-290), with the options of kafka-acls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

import click
from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.static.primitive import i8
from msgspec import Struct

from ...protocol.acls import WILDCARD, AclOperation, PatternType, PermissionType, ResourceType
from ...protocol.host_addresses import is_address
from ..bootstrap import Bootstrap, bootstrap_options
from ..options import Command, json_option, with_options
from ..terminal import print_json, print_table, say
from ..topic_completion import complete_topics
from .acl_bindings import OPERATIONS, Binding, Entry, Resource, Roles, Subjects, bindings, resources_of
from .principals import split_principal
from .questions import ask, check

_COLUMNS: Final = ("resource", "name", "pattern", "principal", "host", "operation", "permission")
_SPECIFIC: Final = ("literal", "prefixed")


class Filter(Struct, frozen=True, kw_only=True):
    """Which ACLs are meant; None and ANY: whatever it is."""

    resource: Resource | None = None
    principal: str | None = None
    entry: Entry | None = None


def _principals(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        split_principal(context, parameter, text)
    return texts


def _resource_options(*pattern_types: str) -> Callable[[Command], Command]:
    return lambda command: with_options(
        command,
        click.option(
            "--topic",
            "topics",
            multiple=True,
            metavar="NAME",
            shell_complete=complete_topics,
            help="* for all of them.",
        ),
        click.option("--group", "groups", multiple=True, metavar="NAME", help="A consumer group."),
        click.option("--transactional-id", "transactional_ids", multiple=True, metavar="NAME"),
        click.option("--delegation-token", "delegation_tokens", multiple=True, metavar="ID"),
        click.option("--user-principal", "users", multiple=True, metavar="User:NAME", help="For tokens of that user."),
        click.option("--cluster", "has_cluster", is_flag=True, help="The cluster itself."),
        click.option(
            "--resource-pattern-type",
            "pattern_name",
            type=click.Choice(pattern_types, case_sensitive=False),
            default="literal",
            show_default=True,
            help="How names are meant: whole, or as beginnings.",
        ),
    )


def _subject_options(command: Command) -> Command:
    return with_options(
        command,
        click.option("--allow-principal", "allowed", multiple=True, metavar="User:NAME", callback=_principals),
        click.option("--deny-principal", "denied", multiple=True, metavar="User:NAME", callback=_principals),
        click.option("--allow-host", "allowed_hosts", multiple=True, metavar="ADDRESS", help="Of those allowed."),
        click.option("--deny-host", "denied_hosts", multiple=True, metavar="ADDRESS", help="Of those denied."),
        click.option(
            "--operation",
            "operations",
            type=click.Choice(list(OPERATIONS), case_sensitive=False),
            multiple=True,
            help="May be repeated. All unless given.",
        ),
        click.option("--producer", "is_producer", is_flag=True, help="What a producer to the topics needs."),
        click.option("--consumer", "is_consumer", is_flag=True, help="What a consumer of topics and group needs."),
        click.option("--idempotent", "is_idempotent", is_flag=True, help="With --producer: for brokers before 2.8."),
    )


@click.group()
def acl() -> None:
    """Add, list and remove ACLs: who may do what."""


@acl.command()
@_resource_options(*_SPECIFIC)
@_subject_options
@json_option
@bootstrap_options
def add(bootstrap: Bootstrap, /, as_json: bool, **options: Any) -> None:
    """Add ACLs: one for each resource, principal, host and operation."""
    wanted = _bindings(options)
    if not wanted:
        raise click.UsageError("--allow-principal or --deny-principal says whom the ACLs are about.")
    for host in (one.entry.host for one in wanted):
        if host != WILDCARD and not is_address(host):
            raise click.UsageError(f"Clients have addresses, which {host!r} is not: it would be about no client.")
    creations = tuple(
        AclCreation(
            resource_type=i8(one.resource.type),
            resource_name=one.resource.name,
            resource_pattern_type=i8(one.resource.pattern_type),
            principal=one.entry.principal,
            host=one.entry.host,
            operation=i8(one.entry.operation),
            permission_type=i8(one.entry.permission),
        )
        for one in wanted
    )
    answer = ask(bootstrap, CreateAclsRequest(creations=creations))
    for one, result in zip(wanted, answer.results, strict=True):
        check(result.error_code, result.error_message, about=_sentence(one))
    _print(wanted, "added", as_json=as_json)


@acl.command("list")
@_resource_options(*_SPECIFIC, "any", "match")
@click.option(
    "--principal", "principals", multiple=True, metavar="User:NAME", callback=_principals, help="Only theirs."
)
@json_option
@bootstrap_options
def list_(bootstrap: Bootstrap, /, principals: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """List ACLs, all of them unless resources or principals are named."""
    filters = [
        Filter(resource=resource, principal=principal)
        for resource in _resources(options) or (None,)
        for principal in principals or (None,)
    ]
    found = sorted({binding for one in filters for binding in _described(bootstrap, one)})
    if found or as_json:
        _print(found, "acls", as_json=as_json)
    else:
        say("There are no such ACLs.")


@acl.command()
@_resource_options(*_SPECIFIC, "any", "match")
@_subject_options
@click.option("--yes", "-y", "--force", is_flag=True, help="Do not ask. Without a terminal the command never asks.")
@json_option
@bootstrap_options
def remove(bootstrap: Bootstrap, /, yes: bool, as_json: bool, **options: Any) -> None:
    """Remove ACLs: those that `add` makes with these options, or all of the resources where no principal is named."""
    wanted = _bindings(options)
    filters = [Filter(resource=one.resource, entry=one.entry) for one in wanted] or [
        Filter(resource=resource) for resource in _resources(options)
    ]
    if not yes and sys.stdin.isatty():
        what = f"{len(wanted)} ACLs" if wanted else "all ACLs of these resources"
        click.confirm(f"Remove {what}?", abort=True, err=True)
    answer = ask(bootstrap, DeleteAclsRequest(filters=tuple(map(_deletion, filters))))
    removed = []
    for result in answer.filter_results:
        check(result.error_code, result.error_message)
        for match in result.matching_acls:
            one = _binding(match, match)
            check(match.error_code, match.error_message, about=_sentence(one))
            removed.append(one)
    if removed or as_json:
        _print(sorted(set(removed)), "removed", as_json=as_json)
    else:
        say("There are no such ACLs.")


def _bindings(options: dict[str, Any]) -> list[Binding]:
    """What the options of `add` and `remove` describe. Raises UsageError."""
    roles = Roles(**{name: options[name] for name in ("is_producer", "is_consumer", "is_idempotent")})
    subjects = Subjects(**{name: options[name] for name in ("allowed", "denied", "allowed_hosts", "denied_hosts")})
    if roles.are_named and (options["operations"] or subjects.denied or subjects.denied_hosts):
        raise click.UsageError("--producer and --consumer say which operations are allowed; they go with no others.")
    if roles.is_idempotent and not roles.is_producer:
        raise click.UsageError("--idempotent goes with --producer.")
    if roles.are_named and not options["topics"]:
        raise click.UsageError("--producer and --consumer are about a --topic.")
    if roles.is_consumer and not options["groups"]:
        raise click.UsageError("--consumer is about a --group, too.")
    resources = _resources(options)
    if not resources:
        raise click.UsageError("Which resource: --topic, --group, --cluster, --transactional-id or another?")
    operations = [OPERATIONS[name] for name in options["operations"]]
    try:
        return bindings(resources, subjects, roles, operations)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _resources(options: dict[str, Any]) -> list[Resource]:
    names = ("topics", "groups", "transactional_ids", "delegation_tokens", "users")
    return resources_of(
        **{name: options[name] for name in names},
        has_cluster=options["has_cluster"] or options.get("is_idempotent", False),
        pattern_type=PatternType[options["pattern_name"].upper()],
    )


def _described(bootstrap: Bootstrap, wanted: Filter) -> Iterable[Binding]:
    resource = wanted.resource
    answer = ask(
        bootstrap,
        DescribeAclsRequest(
            resource_type_filter=i8(ResourceType.ANY if resource is None else resource.type),
            resource_name_filter=None if resource is None else resource.name,
            pattern_type_filter=i8(PatternType.ANY if resource is None else resource.pattern_type),
            principal_filter=wanted.principal,
            host_filter=None,
            operation=i8(AclOperation.ANY),
            permission_type=i8(PermissionType.ANY),
        ),
    )
    check(answer.error_code, answer.error_message)
    return [_binding(one, entry) for one in answer.resources for entry in one.acls]


def _deletion(wanted: Filter) -> DeleteAclsFilter:
    resource, entry = wanted.resource, wanted.entry
    assert resource is not None, "removed are ACLs of resources"
    return DeleteAclsFilter(
        resource_type_filter=i8(resource.type),
        resource_name_filter=resource.name,
        pattern_type_filter=i8(resource.pattern_type),
        principal_filter=None if entry is None else entry.principal,
        host_filter=None if entry is None else entry.host,
        operation=i8(AclOperation.ANY if entry is None else entry.operation),
        permission_type=i8(PermissionType.ANY if entry is None else entry.permission),
    )


def _binding(resource: Any, entry: Any) -> Binding:
    """From an answer, whose parts have the same names in all versions and APIs."""
    return Binding(
        resource=Resource(
            type=ResourceType(int(resource.resource_type)),
            name=resource.resource_name,
            pattern_type=PatternType(int(resource.pattern_type)),
        ),
        entry=Entry(
            principal=entry.principal,
            host=entry.host,
            operation=AclOperation(int(entry.operation)),
            permission=PermissionType(int(entry.permission_type)),
        ),
    )


def _sentence(one: Binding) -> str:
    told = one.described()
    what = f"{told['permission']} {told['operation']} on {told['resource_type']} {told['resource_name']}"
    return f"{what} to {told['principal']}"


def _print(found: Iterable[Binding], verb: str, *, as_json: bool) -> None:
    described = [one.described() for one in found]
    if as_json:
        print_json({verb: described})
    else:
        print_table(_COLUMNS, (tuple(one.values()) for one in described))

"""What there is not without an authorizer and without a listener that knows its clients: ACLs and delegation tokens."""

from __future__ import annotations

from typing import Any

from differential.script import Run, case

from penstock.protocol.apis import ApiKey

ANY, UNKNOWN, BEYOND = 1, 0, 99
TOPIC, LITERAL, READ, ALLOW = 2, 3, 3, 3
ENUMERATIONS = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")


@case(ApiKey.DESCRIBE_ACLS)
def describe_acls(run: Run) -> None:
    every: dict[str, Any] = dict.fromkeys(ENUMERATIONS, ANY)
    run.ask("all", **every)
    run.ask("of a name", **{**every, "resource_name_filter": "t", "principal_filter": "User:a", "host_filter": "*"})
    for name in ENUMERATIONS:
        run.ask(f"unknown {name}", **{**every, name: UNKNOWN})
        run.ask(f"{name} beyond all", **{**every, name: BEYOND})


@case(ApiKey.CREATE_ACLS)
def create_acls(run: Run) -> None:
    acl = {
        "resource_type": TOPIC,
        "resource_name": "t",
        "resource_pattern_type": LITERAL,
        "principal": "User:a",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    run.ask("none", creations=[])
    run.ask("one", creations=[acl])
    run.ask("two alike", creations=[acl, acl])
    run.ask("of any resource", creations=[{**acl, "resource_type": ANY}])
    run.ask("of nothing", creations=[{**acl, "resource_name": ""}])
    for name in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        run.ask(f"unknown {name}", creations=[acl, {**acl, name: UNKNOWN}])


@case(ApiKey.DELETE_ACLS)
def delete_acls(run: Run) -> None:
    every: dict[str, Any] = dict.fromkeys(ENUMERATIONS, ANY)
    run.ask("none", filters=[])
    run.ask("one", filters=[every])
    run.ask("two", filters=[every, {**every, "resource_name_filter": "t"}])
    for name in ENUMERATIONS:
        run.ask(f"unknown {name}", filters=[every, {**every, name: UNKNOWN}])


@case(ApiKey.DESCRIBE_DELEGATION_TOKEN)
def describe_delegation_tokens(run: Run) -> None:
    run.ask("all", owners=None)
    run.ask("none", owners=[])


@case(ApiKey.RENEW_DELEGATION_TOKEN)
def renew_delegation_tokens(run: Run) -> None:
    run.ask("an unknown one", hmac=b"unknown", renew_period=1_000)


@case(ApiKey.EXPIRE_DELEGATION_TOKEN)
def expire_delegation_tokens(run: Run) -> None:
    run.ask("an unknown one", hmac=b"unknown", expiry_time_period=1_000)

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


@case(ApiKey.CREATE_DELEGATION_TOKEN)
def create_delegation_tokens(run: Run) -> None:
    mine: dict[str, Any] = {"renewers": [], "max_lifetime": -1}
    run.ask("one's own", **mine)
    run.ask("with a renewer", **{**mine, "renewers": [{"principal_type": "Group", "principal_name": "g"}]})


def of(kind: str, name: str | None) -> dict[str, Any]:
    return {"entity_type": kind, "entity_name": name}


def entry(*entity: dict[str, Any], **values: float) -> dict[str, Any]:
    return {
        "entity": list(entity),
        "ops": [{"key": key, "value": value, "remove": value < 0} for key, value in values.items()],
    }


@case(ApiKey.ALTER_CLIENT_QUOTAS)
def alter_client_quotas(run: Run) -> None:
    user, client, address = of("user", run.name("user")), of("client-id", "c"), of("ip", "10.9.8.7")

    def alter(label: str, *entries: dict[str, Any], validate_only: bool = False) -> None:
        run.ask(label, entries=list(entries), validate_only=validate_only)

    alter("nothing")
    alter("of a user", entry(user, producer_byte_rate=1000.5))
    alter("of a user and a client", entry(user, client, consumer_byte_rate=2000))
    alter("in another order", entry(client, user, consumer_byte_rate=2001))
    alter("of an address", entry(address, connection_creation_rate=5))
    alter("validated only", entry(user, request_percentage=50), validate_only=True)
    alter("taken away", entry(user, producer_byte_rate=-1))
    alter("taken away twice", entry(user, producer_byte_rate=-1))
    alter("an unknown key", entry(user, bytes_per_day=1))
    alter("an unknown type", entry(of("group", "g"), producer_byte_rate=1))
    alter("no entity", entry(producer_byte_rate=1))
    alter("one type twice", entry(user, of("user", "b"), producer_byte_rate=1))
    alter("an empty name", entry(of("user", ""), producer_byte_rate=1))
    alter("zero", entry(user, producer_byte_rate=0))
    alter("a part of a byte", entry(user, producer_byte_rate=1.5))
    alter("a part of a connection", entry(address, connection_creation_rate=0.5))
    alter("of an address what is a user's", entry(address, producer_byte_rate=1))
    alter("of a user what is an address's", entry(user, connection_creation_rate=1))
    alter("no address", entry(of("ip", "nowhere.invalid"), connection_creation_rate=1))
    alter("an address with a user", entry(user, address, connection_creation_rate=1))
    alter("one right, one wrong", entry(user, request_percentage=1), entry(user, bytes_per_day=1))


EXACT, DEFAULT, SPECIFIED = 0, 1, 2


@case(ApiKey.DESCRIBE_CLIENT_QUOTAS)
def describe_client_quotas(run: Run) -> None:
    user, client, address = of("user", run.name("user")), of("client-id", run.name("client")), of("ip", "10.9.8.6")
    entries = [
        entry(user, producer_byte_rate=1000),
        entry(user, client, producer_byte_rate=2000, consumer_byte_rate=1.5e9),
        entry(address, connection_creation_rate=5),
    ]
    run.quiet(ApiKey.ALTER_CLIENT_QUOTAS, entries=entries, validate_only=False)

    def are_known() -> bool:
        wanted = [{"entity_type": "user", "match_type": EXACT, "match": user["entity_name"]}]
        found = run.quiet(ApiKey.DESCRIBE_CLIENT_QUOTAS, components=wanted, strict=False)["entries"]
        return found is not None and len(found) == 2

    run.wait_for(are_known)

    def describe(label: str, *components: tuple[str, int, str | None], strict: bool = False) -> None:
        asked = [
            {"entity_type": kind, "match_type": match_type, "match": name} for kind, match_type, name in components
        ]
        run.ask(label, components=asked, strict=strict)

    name, client_name = user["entity_name"], client["entity_name"]
    describe("of the user", ("user", EXACT, name))
    describe("of the user alone", ("user", EXACT, name), strict=True)
    describe("of both", ("user", EXACT, name), ("client-id", EXACT, client_name), strict=True)
    describe("of the client", ("client-id", EXACT, client_name))
    describe("of the user with any client", ("user", EXACT, name), ("client-id", SPECIFIED, None))
    describe("of the user with the default client", ("user", EXACT, name), ("client-id", DEFAULT, None))
    describe("of the address", ("ip", EXACT, "10.9.8.6"))
    describe("of nobody", ("user", EXACT, run.name("nobody")))
    describe("of nothing, strictly", strict=True)
    describe("one type twice", ("user", EXACT, "a"), ("user", EXACT, "b"))
    describe("an unknown type", ("group", EXACT, "g"))
    describe("an empty type", ("", EXACT, "g"))
    describe("an exact match without a name", ("user", EXACT, None))
    describe("a default with a name", ("user", DEFAULT, "a"))
    describe("any, with a name", ("user", SPECIFIED, "a"))
    describe("another match", ("user", 7, "a"))
    describe("an address with a user", ("user", EXACT, name), ("ip", EXACT, "10.9.8.6"))


@case(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
def alter_user_scram_credentials(run: Run) -> None:
    name = run.name("user")

    def upsertion(**changed: Any) -> dict[str, Any]:
        return {
            "name": name, "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"p" * 32, **changed,
        }  # fmt: skip

    def alter(label: str, *upsertions: dict[str, Any], deletions: list[dict[str, Any]] | None = None) -> None:
        run.ask(label, deletions=deletions or [], upsertions=list(upsertions))

    alter("nothing")
    alter("of a user", upsertion())
    alter("once more", upsertion(iterations=8192))
    alter("two mechanisms", upsertion(), upsertion(mechanism=2))
    alter("one twice", upsertion(), upsertion())
    alter("few iterations", upsertion(iterations=4095))
    alter("many iterations", upsertion(iterations=16385))
    alter("an empty name", upsertion(name=""))
    alter("an unknown mechanism", upsertion(mechanism=0))
    alter("a mechanism beyond all", upsertion(mechanism=9))
    alter("no salt", upsertion(salt=b""))
    alter("no password", upsertion(salted_password=b""))
    alter("made and deleted", upsertion(), deletions=[{"name": name, "mechanism": 1}])
    alter("one deleted", deletions=[{"name": name, "mechanism": 2}])
    alter("deleted twice", deletions=[{"name": name, "mechanism": 2}])
    alter("deleted of an unknown mechanism", deletions=[{"name": name, "mechanism": 7}])


@case(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
def describe_user_scram_credentials(run: Run) -> None:
    name, without = run.name("user"), run.name("nobody")
    one = {"name": name, "mechanism": 2, "iterations": 5000, "salt": b"salt", "salted_password": b"p" * 64}
    run.quiet(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=[], upsertions=[one])

    def is_known() -> bool:
        (found,) = run.quiet(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=[{"name": name}])["results"]
        return bool(found["credential_infos"])

    run.wait_for(is_known)
    run.ask("the user", users=[{"name": name}])
    run.ask("one without", users=[{"name": without}])
    run.ask("both", users=[{"name": name}, {"name": without}])
    run.ask("one twice", users=[{"name": name}, {"name": name}])
    run.ask("an empty name", users=[{"name": ""}])

"""ACLs over HTTP: searched, created and deleted by Kafka's rules and with Confluent's fields."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

import pytest
from rest_node import RestNode, run_with

AUTHORIZER: Final = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
READ: Final = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:ada",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
PREFIXED: Final = {**READ, "resource_name": "ord", "pattern_type": "PREFIXED", "operation": "WRITE"}
TOKENS: Final = {**READ, "resource_type": "USER", "resource_name": "User:bob", "operation": "DESCRIBE_TOKENS"}
DENY: Final = {
    **READ,
    "resource_type": "CLUSTER",
    "resource_name": "kafka-cluster",
    "host": "10.0.0.1",
    "operation": "ALTER",
    "permission": "DENY",
}
ALL: Final = "resource_type=ANY&pattern_type=ANY&operation=ANY&permission=ANY"


def told(answer: Any) -> list[dict[str, str]]:
    """The ACLs of an answer, as they are created."""
    return [{name: one[name] for name in READ} for one in answer["data"]]


def test_an_acl_is_created_found_by_its_own_address_and_deleted() -> None:
    async def test(node: RestNode) -> None:
        async with node.session.post(f"{node.root}/acls", json=READ) as created:
            assert (created.status, await created.read()) == (201, b"")
            address = created.headers["Location"]
        (found,) = (await node.get("/acls"))["data"]
        assert (found["kind"], found["cluster_id"]) == ("KafkaAcl", node.cluster_id)
        assert found["metadata"]["self"] == address
        # One that is there already is no error (KIP-140), and is there once.
        await node.ask("POST", "/acls", READ, status=201)
        await node.ask("POST", "/acls", DENY, status=201)
        async with node.session.get(address) as answer:
            assert told(await answer.json()) == [READ]
        async with node.session.delete(address) as answer:
            assert told(await answer.json()) == [READ]
        assert told(await node.get("/acls")) == [DENY]

    run_with(test, **AUTHORIZER)


def test_a_search_finds_what_its_filter_means() -> None:
    async def test(node: RestNode) -> None:
        await node.ask("POST", "/acls:batch", {"data": [TOKENS, DENY, PREFIXED, READ]}, status=201)
        listed = await node.get("/acls")
        assert (listed["kind"], listed["metadata"]["next"]) == ("KafkaAclList", None)
        assert told(listed) == [PREFIXED, READ, DENY, TOKENS]
        for query, expected in (
            ({"resource_type": "TOPIC"}, [PREFIXED, READ]),
            ({"resource_name": "orders"}, [READ]),
            ({"resource_name": "orders", "pattern_type": "MATCH"}, [PREFIXED, READ]),
            ({"pattern_type": "PREFIXED"}, [PREFIXED]),
            ({"principal": "User:bob"}, []),
            ({"host": "10.0.0.1"}, [DENY]),
            ({"operation": "DESCRIBE_TOKENS"}, [TOKENS]),
            ({"permission": "DENY"}, [DENY]),
            ({"principal": "", "host": "", "operation": "ANY"}, [PREFIXED, READ, DENY, TOKENS]),
        ):
            assert told(await node.get(f"/acls?{urlencode(query)}")) == expected, query

    run_with(test, **AUTHORIZER)


def test_the_next_page_is_of_the_same_search() -> None:
    async def test(node: RestNode) -> None:
        many = [{**READ, "resource_name": f"t{number}"} for number in range(5)]
        await node.ask("POST", "/acls:batch", {"data": [DENY, *many]}, status=201)
        address: str | None = f"{node.root}/acls?permission=ALLOW&page_size=2"
        found: list[dict[str, str]] = []
        while address is not None:
            async with node.session.get(address) as answer:
                page = await answer.json()
            assert len(page["data"]) <= 2
            assert page["metadata"]["self"].endswith("/acls?permission=ALLOW")
            found += told(page)
            address = page["metadata"]["next"]
        assert found == many

    run_with(test, **AUTHORIZER)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"resource_type": "CLUSTER"}, "kafka-cluster"),
        ({"resource_name": ""}, "empty resource name"),
        ({"principal": "ada"}, "no colon"),
        ({"resource_type": "ANY"}, "$.resource_type"),
        ({"pattern_type": "MATCH"}, "$.pattern_type"),
        ({"operation": "UNKNOWN"}, "$.operation"),
        ({"permission": "allow"}, "$.permission"),
        ({"host": None}, "$.host"),
    ],
)
def test_what_is_no_acl_is_refused(change: dict[str, object], sentence: str) -> None:
    async def test(node: RestNode) -> None:
        problem = await node.ask("POST", "/acls", {**READ, **change}, status=400)
        assert sentence in problem["detail"]
        assert (await node.get("/acls"))["data"] == []

    run_with(test, **AUTHORIZER)


def test_the_first_that_is_refused_is_the_error_and_the_others_are_created() -> None:
    async def test(node: RestNode) -> None:
        wrong = {**READ, "principal": "ada"}
        problem = await node.ask("POST", "/acls:batch", {"data": [READ, wrong, DENY]}, status=400)
        assert problem["title"] == "INVALID_REQUEST"
        assert problem["detail"].startswith("data[1]: ")
        assert told(await node.get("/acls")) == [READ, DENY]

    run_with(test, **AUTHORIZER)


@pytest.mark.parametrize("left_out", ["resource_type", "pattern_type", "operation", "permission"])
def test_a_deletion_says_what_it_is_about(left_out: str) -> None:
    async def test(node: RestNode) -> None:
        await node.ask("POST", "/acls", READ, status=201)
        query = "&".join(one for one in ALL.split("&") if not one.startswith(left_out))
        problem = await node.ask("DELETE", f"/acls?{query}", status=400)
        assert left_out in problem["detail"]
        assert told(await node.ask("DELETE", f"/acls?{ALL}")) == [READ]

    run_with(test, **AUTHORIZER)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/acls?resource_type=TOPIC", None),
        ("POST", "/acls", READ),
        ("DELETE", f"/acls?{ALL}", None),
        ("POST", "/acls:batch", {"data": [READ]}),
    ],
)
def test_there_are_none_without_an_authorizer(method: str, path: str, body: object) -> None:
    async def test(node: RestNode) -> None:
        assert await node.refused(method, path, body, status=501) == "SECURITY_DISABLED"

    run_with(test)

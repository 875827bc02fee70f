"""Whether ACLs allow an operation: the rules of Apache Kafka's StandardAuthorizer."""

from uuid import UUID

import pytest

from penstock.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from penstock.quorum.metadata.acls import Acl, AclsImage
from penstock.quorum.permissions.ruling import AuthorizerSettings, is_allowed_somewhere, rule

ALICE, BOB, HOST = "User:alice", "User:bob", "10.0.0.1"
DENY = PermissionType.DENY
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
ALL, ALTER_CONFIGS, DESCRIBE_CONFIGS = AclOperation.ALL, AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS
CLOSED, OPEN = AuthorizerSettings(super_users=frozenset({BOB})), AuthorizerSettings(allows_without_acls=True)


def acl(
    name: str = "orders",
    operation: AclOperation = READ,
    permission: PermissionType = PermissionType.ALLOW,
    pattern: PatternType = PatternType.LITERAL,
    principal: str = ALICE,
    host: str = "*",
) -> Acl:
    return Acl(ResourceType.TOPIC, name, pattern, principal, host, operation, permission)


def image(*acls: Acl) -> AclsImage:
    return AclsImage().changed({UUID(int=number): one for number, one in enumerate(acls)})


PREFIX = PatternType.PREFIXED
IMPLYING = (READ, WRITE, AclOperation.DELETE, AclOperation.ALTER)


@pytest.mark.parametrize(
    ("acls", "operation", "is_allowed"),
    [
        ([], READ, False),
        ([acl()], READ, True),
        ([acl()], WRITE, False),
        ([acl(name="order")], READ, False),
        ([acl(name="order", pattern=PREFIX)], READ, True),
        ([acl(name="*")], READ, True),
        # "*" is no wildcard in a prefix.
        ([acl(name="*", pattern=PREFIX)], READ, False),
        ([acl(principal="User:*")], READ, True),
        ([acl(principal=BOB)], READ, False),
        ([acl(host=HOST)], READ, True),
        ([acl(host="10.0.0.2")], READ, False),
        ([acl(operation=ALL)], WRITE, True),
        # A denial goes first, wherever it stands.
        ([acl(), acl(name="*", permission=DENY)], READ, False),
        ([acl(), acl(name="o", pattern=PREFIX, permission=DENY)], READ, False),
        ([acl(), acl(permission=DENY, principal="User:*", host=HOST)], READ, False),
        ([acl(), acl(permission=DENY, operation=ALL)], READ, False),
        ([acl(), acl(permission=DENY, host="10.0.0.2")], READ, True),
        # A permission implies that to describe; a denial does not deny it.
        *[([acl(operation=operation)], DESCRIBE, True) for operation in IMPLYING],
        ([acl(operation=AclOperation.CREATE)], DESCRIBE, False),
        ([acl(operation=WRITE), acl(permission=DENY)], DESCRIBE, True),
        ([acl(operation=ALTER_CONFIGS)], DESCRIBE_CONFIGS, True),
        ([acl(operation=ALTER_CONFIGS)], DESCRIBE, False),
    ],
)  # fmt: skip
def test_what_acls_allow(acls: list[Acl], operation: AclOperation, is_allowed: bool) -> None:
    ruling = rule(image(*acls), CLOSED, ALICE, HOST, operation, (ResourceType.TOPIC, "orders"))
    assert ruling.is_allowed == is_allowed
    assert rule(image(*acls), CLOSED, BOB, HOST, operation, (ResourceType.TOPIC, "orders")).is_allowed


def test_only_what_no_acl_is_about_is_open_to_everyone() -> None:
    def is_open(acls: AclsImage, resource_type: ResourceType = ResourceType.TOPIC) -> bool:
        return rule(acls, OPEN, ALICE, HOST, READ, (resource_type, "orders")).is_allowed

    assert is_open(image())
    assert is_open(image(acl(name="others")))
    assert not is_open(image(acl(principal=BOB)))
    assert not is_open(image(acl(principal=BOB, name="or", pattern=PREFIX)))
    assert is_open(image(acl(principal=BOB)), ResourceType.GROUP)


def test_a_ruling_says_what_it_rests_on() -> None:
    resource = (ResourceType.TOPIC, "orders")
    assert str(rule(image(), CLOSED, BOB, HOST, READ, resource)) == "SuperUser"
    assert str(rule(image(), CLOSED, ALICE, HOST, READ, resource)) == "DefaultDeny"
    assert str(rule(image(), OPEN, ALICE, HOST, READ, resource)) == "DefaultAllow"
    assert str(rule(image(acl(host=HOST)), CLOSED, ALICE, HOST, READ, resource)) == (
        "MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName=orders, patternType=LITERAL, "
        "principal=User:alice, host=10.0.0.1, operation=READ, permissionType=ALLOW))"
    )


@pytest.mark.parametrize(
    ("acls", "is_allowed"),
    [
        ([], False),
        ([acl(operation=WRITE)], True),
        ([acl(operation=ALL, name="x", pattern=PREFIX)], True),
        ([acl(operation=READ)], False),
        ([acl(operation=WRITE, principal=BOB)], False),
        ([acl(operation=WRITE), acl(operation=WRITE, permission=DENY)], False),
        ([acl(operation=WRITE), acl(operation=WRITE, permission=DENY, name="other")], True),
        ([acl(operation=WRITE), acl(operation=WRITE, permission=DENY, name="or", pattern=PREFIX)], False),
        ([acl(operation=WRITE, name="*"), acl(operation=WRITE, permission=DENY, name="or", pattern=PREFIX)], True),
        ([acl(operation=WRITE), acl(operation=WRITE, permission=DENY, name="*")], False),
        # The denial of one name leaves the others of its prefix.
        (
            [acl(operation=WRITE, name="or", pattern=PREFIX), acl(operation=WRITE, permission=DENY, name="or")],
            True,
        ),
    ],
)
def test_whether_there_is_anything_to_write(acls: list[Acl], is_allowed: bool) -> None:
    told = is_allowed_somewhere(image(*acls), CLOSED, ALICE, HOST, WRITE, ResourceType.TOPIC)
    assert told == is_allowed
    assert is_allowed_somewhere(image(*acls), CLOSED, BOB, HOST, WRITE, ResourceType.TOPIC)


def test_without_acls_there_may_be_something_to_write() -> None:
    assert is_allowed_somewhere(image(), OPEN, ALICE, HOST, WRITE, ResourceType.TOPIC)
    assert not is_allowed_somewhere(image(acl(name="*", principal=BOB)), OPEN, ALICE, HOST, WRITE, ResourceType.TOPIC)


@pytest.mark.parametrize(
    ("acl_host", "host", "is_same"),
    [
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("FE80:0:0:0:0:0:0:A", "fe80::a", True),
        ("::2", "::1", False),
        ("no:address", "::1", False),
    ],
)
def test_an_address_is_the_same_however_it_is_written(acl_host: str, host: str, is_same: bool) -> None:
    """Java writes those of IPv6 in full, so ACLs that were made for Apache Kafka have them so."""
    denying = image(acl(), acl(permission=DENY, host=acl_host))
    ruling = rule(denying, CLOSED, ALICE, host, READ, (ResourceType.TOPIC, "orders"))
    assert ruling.is_allowed is not is_same

"""ACLs from the options of kafka-acls: what each combination makes."""

import pytest

from penstock.client.security.acl_bindings import OPERATIONS, Binding, Roles, Subjects, bindings, resources_of
from penstock.protocol.acls import AclOperation, PatternType

ADA = Subjects(allowed=("User:ada",))


def shown(made: list[Binding]) -> list[str]:
    return [
        " ".join(one[key] for key in ("permission", "operation", "resource_type", "resource_name", "principal", "host"))
        for one in (binding.described() for binding in made)
    ]


def test_a_producer_and_a_consumer_have_what_they_need_once() -> None:
    resources = resources_of(topics=["orders"], groups=["g"], transactional_ids=["t"], has_cluster=True)
    roles = Roles(is_producer=True, is_consumer=True, is_idempotent=True)
    assert shown(bindings(resources, ADA, roles, ())) == [
        "allow Write topic orders User:ada *",
        "allow Describe topic orders User:ada *",
        "allow Create topic orders User:ada *",
        "allow Read topic orders User:ada *",
        "allow Read group g User:ada *",
        "allow Write transactional-id t User:ada *",
        "allow Describe transactional-id t User:ada *",
        "allow IdempotentWrite cluster kafka-cluster User:ada *",
    ]


def test_every_combination_of_principals_operations_and_hosts() -> None:
    subjects = Subjects(allowed=("User:ada", "User:bob"), allowed_hosts=("10.0.0.1", "10.0.0.2"), denied=("User:eve",))
    made = bindings(resources_of(topics=["*"]), subjects, Roles(), [AclOperation.READ, AclOperation.WRITE])
    assert len(made) == 2 * 2 * 2 + 2
    assert shown(made)[0] == "allow Read topic * User:ada 10.0.0.1"
    assert shown(made)[-1] == "deny Write topic * User:eve *"


def test_all_operations_are_meant_where_none_is_named() -> None:
    (one,) = bindings(resources_of(users=["User:bob"], pattern_type=PatternType.PREFIXED), ADA, Roles(), operations=())
    assert (one.entry.operation, one.resource.pattern_type) == (AclOperation.ALL, PatternType.PREFIXED)


def test_the_cluster_has_a_whole_name_whatever_the_others_have() -> None:
    (one,) = resources_of(has_cluster=True, pattern_type=PatternType.PREFIXED)
    assert one.pattern_type is PatternType.LITERAL


def test_an_operation_that_a_resource_does_not_have() -> None:
    with pytest.raises(ValueError, match="Write is no operation of a delegation token, which has All, Describe"):
        bindings(resources_of(delegation_tokens=["x"]), ADA, Roles(), [AclOperation.WRITE])


def test_operations_have_the_names_of_kafka() -> None:
    assert {"Read", "ClusterAction", "DescribeConfigs", "IdempotentWrite", "TwoPhaseCommit"} <= OPERATIONS.keys()
    assert not {"Any", "Unknown"} & OPERATIONS.keys()

"""CreateAcls and DeleteAcls as the controller decides them."""

from dataclasses import replace

import pytest
from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.static.primitive import i8
from metadata_cluster import Cluster

from penstock.protocol.errors import ErrorCode
from penstock.quorum.decisions.acls import acl_of, create_acls, delete_acls
from penstock.quorum.metadata.acls import Acl

ACL = AclCreation(
    resource_type=i8(2),
    resource_name="orders",
    resource_pattern_type=i8(3),
    principal="User:alice",
    host="*",
    operation=i8(3),
    permission_type=i8(3),
)
ANY = DeleteAclsFilter(
    resource_type_filter=i8(1),
    resource_name_filter=None,
    pattern_type_filter=i8(1),
    principal_filter=None,
    host_filter=None,
    operation=i8(1),
    permission_type=i8(1),
)


def create(cluster: Cluster, *acls: AclCreation) -> list[tuple[int, str | None]]:
    response = cluster.submit(create_acls, CreateAclsRequest(creations=acls))
    return [(int(result.error_code), result.error_message) for result in response.results]


def present(cluster: Cluster) -> list[Acl]:
    return sorted(cluster.image.acls.by_id.values())


def test_an_acl_is_created_once() -> None:
    cluster = Cluster()
    other = replace(ACL, operation=i8(4))
    assert create(cluster, ACL, ACL, other) == [(0, None)] * 3
    assert create(cluster, ACL) == [(0, None)]
    assert present(cluster) == [acl_of(ACL), acl_of(other)]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (replace(ACL, resource_type=i8(1)), "Invalid resourceType ANY"),
        (replace(ACL, resource_pattern_type=i8(2)), "Invalid patternType MATCH"),
        (replace(ACL, operation=i8(1)), "Invalid operation ANY"),
        (replace(ACL, operation=i8(99)), "Invalid operation UNKNOWN"),
        (replace(ACL, permission_type=i8(1)), "Invalid permissionType ANY"),
        (replace(ACL, resource_name=""), "Invalid empty resource name"),
        (replace(ACL, resource_type=i8(4)), "The only valid name for the CLUSTER resource is kafka-cluster"),
        (
            replace(ACL, principal="alice"),
            "Could not parse principal from `alice` (no colon is present separating the principal type from the "
            "principal name)",
        ),
    ],
)
def test_what_is_no_acl_is_refused_alone(bad: AclCreation, sentence: str) -> None:
    cluster = Cluster()
    assert create(cluster, bad, ACL) == [(ErrorCode.INVALID_REQUEST, sentence), (0, None)]
    assert present(cluster) == [acl_of(ACL)]


def test_filters_delete_what_they_match() -> None:
    cluster = Cluster()
    prefix = replace(ACL, resource_name="or", resource_pattern_type=i8(4))
    wildcard = replace(ACL, resource_name="*", permission_type=i8(2))
    other = replace(ACL, resource_name="other", host="10.0.0.1")
    create(cluster, ACL, prefix, wildcard, other)

    def matched(*filters: DeleteAclsFilter) -> list[list[str]]:
        response = cluster.submit(delete_acls, DeleteAclsRequest(filters=filters))
        return [sorted(acl.resource_name for acl in result.matching_acls) for result in response.filter_results]

    none = replace(ANY, principal_filter="User:bob")
    assert matched(none, replace(ANY, host_filter="10.0.0.2")) == [[], []]
    literal = replace(ANY, resource_name_filter="or", pattern_type_filter=i8(3))
    assert matched(literal, replace(ANY, operation=i8(4))) == [[], []]
    assert len(present(cluster)) == 4
    # Whatever is about `orders`, and what denies: the wildcard is in both.
    about = replace(ANY, resource_name_filter="orders", pattern_type_filter=i8(2))
    assert matched(about, replace(ANY, permission_type=i8(2))) == [["*", "or", "orders"], ["*"]]
    assert present(cluster) == [acl_of(other)]
    assert matched(ANY) == [["other"]]
    assert present(cluster) == []

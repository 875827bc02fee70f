"""Which ACLs are about a resource, and the index they are found in."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.acls import WILDCARD, AclOperation, PatternType, PermissionType, ResourceType
from penstock.quorum.metadata.acls import Acl, AclsImage


def acl(name: str, pattern: PatternType = PatternType.LITERAL, host: str = "*") -> Acl:
    return Acl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=pattern,
        principal="User:alice",
        host=host,
        operation=AclOperation.READ,
        permission_type=PermissionType.ALLOW,
    )


def is_about(one: Acl, name: str) -> bool:
    """The rule itself, without an index."""
    if one.pattern_type == PatternType.PREFIXED:
        return name.startswith(one.resource_name)
    return one.resource_name in (name, WILDCARD)


@pytest.mark.thorough
@given(seed=st.integers(0, 2**32))
def test_the_index_finds_what_a_search_of_all_finds(seed: int) -> None:
    random = Random(seed)
    names = ["a", "ab", "abc", "b", WILDCARD]
    image, present = AclsImage(), dict[UUID, Acl]()
    for number in range(12):
        changes: dict[UUID, Acl | None] = {}
        if present and random.random() < 0.5:
            changes[random.choice(sorted(present))] = None
        pattern = random.choice([PatternType.LITERAL, PatternType.PREFIXED])
        changes[UUID(int=number)] = acl(random.choice(names), pattern, host=str(number))
        image = image.changed(changes)
        for acl_id, one in changes.items():
            if one is None:
                del present[acl_id]
            else:
                present[acl_id] = one
        for name in [*names, "abcd", "x"]:
            assert sorted(image.about(ResourceType.TOPIC, name)) == sorted(
                one for one in present.values() if is_about(one, name)
            )
            assert not list(image.about(ResourceType.GROUP, name))
    assert image.changed(dict.fromkeys(present)) == AclsImage()


def test_the_longest_prefix_comes_first() -> None:
    one, two = acl("a", PatternType.PREFIXED), acl("ab", PatternType.PREFIXED)
    image = AclsImage().changed({UUID(int=1): one, UUID(int=2): two, UUID(int=3): acl("abc"), UUID(int=4): acl("*")})
    assert list(image.about(ResourceType.TOPIC, "abc")) == [acl("abc"), two, one, acl("*")]

"""What users without a credential are shown is what users with one are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from penstock.broker.security.rules.decoy_credentials import (
    OF_KAFKA,
    OF_TOKENS,
    SALT_BYTES_MAX,
    SHAPES_MAX,
    DecoyCredentials,
    shapes_of,
)
from penstock.broker.security.rules.sasl_mechanisms import token_credential
from penstock.protocol.scram import SCRAM_SHA_256, SCRAM_SHA_512
from penstock.quorum.metadata.security_image import ScramCredential, ScramUser

RAW = bytes(range(32))
Credentials = Mapping[ScramUser, ScramCredential]


def credential(iterations: int, salt: bytes = RAW) -> ScramCredential:
    return ScramCredential(salt=salt, stored_key=b"", server_key=b"", iterations=iterations)


def users(*groups: tuple[int, ScramCredential], mechanism: int = SCRAM_SHA_256.number) -> Credentials:
    """So many users with that credential each."""
    return {
        ScramUser(f"user-{group}-{number}", mechanism): one
        for group, (count, one) in enumerate(groups)
        for number in range(count)
    }


def drawn(credentials: Credentials, *, key: bytes = b"key", count: int = 600) -> list[ScramCredential]:
    decoys = DecoyCredentials(key, lambda: credentials)
    return [decoys.make(SCRAM_SHA_256, f"name-{number}", False) for number in range(count)]


def test_each_shape_is_drawn_as_often_as_users_have_it() -> None:
    shown = drawn(users((60, credential(4096)), (30, credential(8192)), (10, credential(16384, b"x" * 20))))
    counts = Counter((one.iterations, len(one.salt)) for one in shown)
    assert set(counts) == {(4096, 32), (8192, 32), (16384, 20)}
    assert 300 < counts[4096, 32] < 420
    assert 130 < counts[8192, 32] < 230
    assert 30 < counts[16384, 20] < 95


def test_the_same_name_is_shown_the_same_by_every_node_of_the_cluster() -> None:
    some = users((3, credential(4096)), (2, credential(9999)))
    assert drawn(some) == drawn(dict(reversed(list(some.items()))))
    assert drawn(some) != drawn(some, key=b"another cluster's")
    assert len({one.salt for one in drawn(some)}) == 600


def test_one_user_more_changes_what_few_names_are_shown_and_those_have_another_salt() -> None:
    before = drawn(users((20, credential(4096)), (20, credential(8192))))
    after = drawn(users((20, credential(4096)), (21, credential(8192))))
    changed = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    assert 0 < len(changed) < 30
    assert all((one.iterations, other.iterations) == (4096, 8192) for one, other in changed)
    assert all(one.salt != other.salt and one.stored_key != other.stored_key for one, other in changed)


def test_users_of_one_mechanism_say_nothing_of_the_other() -> None:
    decoys = DecoyCredentials(b"key", lambda: users((5, credential(16384)), mechanism=SCRAM_SHA_512.number))
    assert decoys.make(SCRAM_SHA_512, "x", False).iterations == 16384
    assert decoys.make(SCRAM_SHA_256, "x", False).iterations == OF_KAFKA.iterations


def test_a_changed_credential_is_seen_at_once() -> None:
    now = users((1, credential(4096)))
    decoys = DecoyCredentials(b"key", lambda: now)
    assert decoys.make(SCRAM_SHA_256, "x", False).iterations == 4096
    now = users((1, credential(5000)))
    assert decoys.make(SCRAM_SHA_256, "x", False).iterations == 5000


@pytest.mark.parametrize(
    "salt", [b"1" + b"0" * 25, b"z" * 25, b"a", b"z" * 40, b"", b"\0" * 8, b"A" * 26, b"x" * (SALT_BYTES_MAX + 1)]
)
def test_a_salt_looks_as_the_salts_of_users_do(salt: bytes) -> None:
    """Kafka's clients write numbers below 2^130 in base 36."""
    is_number = (salt.isalnum() and salt.islower()) or salt.isdigit()
    shown = {one.salt for one in drawn(users((1, credential(4096, salt))), count=40)}
    assert {len(one) for one in shown} == {min(len(salt), SALT_BYTES_MAX)}
    if is_number:
        assert all(one.isascii() and one.isalnum() and one.lower() == one and one[:1] != b"0" for one in shown)
    elif salt:
        assert not all(one.isalnum() for one in shown)
    if len(salt) == 26 and is_number:
        assert all(int(one, 36) < 2**130 for one in shown)
    assert len(shown) > 20 or len(salt) < 2


def test_without_users_they_look_as_those_of_kafkas_tools() -> None:
    assert {(one.iterations, len(one.salt)) for one in drawn({}, count=3)} == {
        (OF_KAFKA.iterations, OF_KAFKA.salt_bytes)
    }


def test_what_is_shown_of_a_token_does_not_depend_on_users() -> None:
    decoys = DecoyCredentials(b"key", lambda: users((5, credential(16384))))
    shown, real = decoys.make(SCRAM_SHA_256, "t", True), token_credential(SCRAM_SHA_256, b"secret", "t")
    assert (shown.iterations, len(shown.salt)) == (real.iterations, len(real.salt))
    assert (shown.iterations, len(shown.salt)) == (OF_TOKENS.iterations, OF_TOKENS.salt_bytes)


def test_shapes_are_bounded_and_the_most_frequent_ones_stay() -> None:
    many = users(*((1, credential(4096 + number)) for number in range(SHAPES_MAX + 8)), (5, credential(16000)))
    (shapes,) = shapes_of(many).values()
    assert len(shapes) == SHAPES_MAX
    assert shapes[0][0].iterations == 16000

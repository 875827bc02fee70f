"""Bootstrap addresses as people write them."""

import pytest

from penstock.client.addresses import Address, parse_addresses


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9093", (Address("localhost", 9093),)),
        ("a, b:1 ,", (Address("a", 9092), Address("b", 1))),
        ("[::1]:9093", (Address("::1", 9093),)),
        ("[::1]", (Address("::1", 9092),)),
        ("PLAINTEXT://a:1", (Address("a", 1),)),
    ],
)
def test_addresses_are_read(text: str, addresses: tuple[Address, ...]) -> None:
    assert parse_addresses(text) == addresses


@pytest.mark.parametrize("text", ["", ",", "a:", "a:x", "a:0", "a:65536", ":9092", "::1:9092"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_addresses(text)


def test_ipv6_address_is_written_with_brackets() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"

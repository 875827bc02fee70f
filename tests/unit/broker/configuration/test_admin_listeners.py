"""`admin.listeners`: what can be written, and what others are told."""

import pytest

from penstock.broker.configuration.admin_listeners import (
    AdminListener,
    advertised_admin_listeners,
    parse_admin_listeners,
)
from penstock.broker.configuration.node_config import load
from penstock.protocol.errors import ConfigError


def test_without_a_word_it_is_the_loopback_and_a_free_port() -> None:
    assert load({}).admin_listeners == (AdminListener(host="127.0.0.1", port=0),)


def test_an_empty_list_is_none_at_all() -> None:
    assert load({"admin.listeners": ""}).admin_listeners == ()


def test_addresses_of_both_families_and_every_interface() -> None:
    listeners = parse_admin_listeners("admin.listeners", ("http://[::1]:8083", "http://:80", "http://a.example:1/"))
    assert [str(one) for one in listeners] == ["http://[::1]:8083", "http://:80", "http://a.example:1"]


@pytest.mark.parametrize("text", ["127.0.0.1:80", "http://host", "http://host:65536", "ftp://host:1", "http://a/b:1"])
def test_anything_else_is_refused_with_the_key(text: str) -> None:
    with pytest.raises(ConfigError, match=r"admin\.listeners"):
        parse_admin_listeners("admin.listeners", (text,))


def test_every_interface_is_advertised_by_the_name_of_the_machine() -> None:
    bound = (AdminListener(host="0.0.0.0", port=8083),)
    assert advertised_admin_listeners((), bound, "m1") == (AdminListener(host="m1", port=8083),)
    told = (AdminListener(host="admin.example", port=80),)
    assert advertised_admin_listeners(told, bound, "m1") == told

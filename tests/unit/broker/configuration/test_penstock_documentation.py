"""Every key that is not Kafka's has a text."""

from penstock.broker.configuration.penstock_documentation import DOCUMENTATION
from penstock.broker.configuration.penstock_keys import PENSTOCK_KEYS
from penstock.quorum.configs.own_keys import OWN_KEYS


def test_every_key_of_penstock_is_documented() -> None:
    assert set(DOCUMENTATION) == {*PENSTOCK_KEYS, *OWN_KEYS}
    assert all(text.endswith(".") for text in DOCUMENTATION.values())

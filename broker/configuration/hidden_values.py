"""What a sentence about properties must not show: passwords, and what configuration providers gave."""

from collections.abc import Mapping
from typing import Final

from ...quorum.configs.definition import ConfigType
from ...quorum.configs.effective import is_sensitive
from .penstock_keys import PENSTOCK_KEYS

HIDDEN: Final = "[hidden]"
"""As Kafka shows the value of a password."""
_SHORTEST_SECRET: Final = 4
"""Characters. A shorter value would be found in other words of a sentence, and is no secret."""


def is_hidden(name: str) -> bool:
    """Whether the value of a node's property must not be shown."""
    ours = PENSTOCK_KEYS.get(name)
    return is_sensitive(name) if ours is None else ours.type is ConfigType.PASSWORD


def hide_secrets(sentence: str, properties: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """The sentence with `variables`, by key, in the place of what they stand for, and HIDDEN for passwords."""
    hidden = {
        value: variables.get(name, HIDDEN)
        for name, text in properties.items()
        if (name in variables or is_hidden(name)) and len(value := text.strip()) >= _SHORTEST_SECRET
    }
    for value in sorted(hidden, key=len, reverse=True):
        sentence = sentence.replace(value, hidden[value])
    return sentence

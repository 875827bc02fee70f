"""Objects as sequences of operations see them: a register, and a topic with its partitions and configurations.

A model takes a state and an action and answers the state after it, or IMPOSSIBLE where the action cannot have had that
outcome in that state. Of an action with an unknown outcome only the request is known.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from .linearizability import IMPOSSIBLE

# The value of a configuration that was never set, in what was read: any that no operation ever sets.
UNSET: Final = "(unset)"


class Action(NamedTuple):
    """`kind` is the operation with its outcome; the arguments depend on it."""

    kind: str
    argument: Hashable = None
    value: Hashable = None


def register(state: Hashable, action: Hashable) -> Hashable:
    """`write` and `read` of `argument`; the state is the value."""
    assert isinstance(action, Action)
    if action.kind == "write":
        return action.argument
    return state if action.argument == state else IMPOSSIBLE


class TopicState(NamedTuple):
    partitions: int
    # Of those that were set, sorted.
    configs: tuple[tuple[str, Hashable], ...] = ()


def topic(state: Hashable, action: Hashable) -> Hashable:
    """The state is a `TopicState`, or None where there is no such topic. Actions are

    - `create` with partitions and configurations, `delete`, `grow` to a total, `set` of a key to a value, when done;
    - `exists`, `missing`: it was refused because there was one, or none; `not-larger`: because it had as many
      partitions as the total or more;
    - `describe` with the number of partitions, None without a topic; `get` of a key, with its value.
    """
    assert isinstance(action, Action)
    kind, argument, value = action
    if state is None:
        if kind == "create":
            assert isinstance(argument, int)
            assert isinstance(value, tuple)
            return TopicState(argument, value)
        return state if kind == "missing" or (kind == "describe" and argument is None) else IMPOSSIBLE
    assert isinstance(state, TopicState)
    match kind:
        case "delete":
            return None
        case "grow":
            assert isinstance(argument, int)
            return state._replace(partitions=argument) if argument > state.partitions else IMPOSSIBLE
        case "set":
            configs = {**dict(state.configs), str(argument): value}
            return state._replace(configs=tuple(sorted(configs.items())))
        case "exists":
            return state
        case "not-larger":
            assert isinstance(argument, int)
            return state if argument <= state.partitions else IMPOSSIBLE
        case "describe":
            return state if argument == state.partitions else IMPOSSIBLE
        case "get":
            return state if dict(state.configs).get(str(argument), UNSET) == value else IMPOSSIBLE
    return IMPOSSIBLE

"""Random histories of one object under concurrent clients: some that it really had, some with a changed answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from random import Random
from typing import Final

from penstock.chaos.checkers.linearizability import IMPOSSIBLE, Model, Step
from penstock.chaos.checkers.object_models import UNSET, Action, TopicState, register, topic

Request = tuple[str, Hashable, Hashable]
# Actions of both models that change no state, whatever it is.
READS: Final = frozenset({"read", "exists", "missing", "not-larger", "describe", "get"})


class _Client:
    """What one process does: it asks, the object acts or does not, and it is answered or not."""

    def __init__(self) -> None:
        self.invoked: int | None = None
        self.request: Request = ("", None, None)
        self.answer: Action | None = None


def history(
    rng: Random,
    ask: Callable[[Random, int], Request],
    act: Callable[[Hashable, Request], tuple[Hashable, Action]],
    *,
    operations: int,
    clients: int,
    unknown: float,
) -> list[Step]:
    """Of an object whose operations take effect one by one, each between its request and its answer; those without an
    answer, a share of `unknown`, at any later moment or never."""
    state: Hashable = None
    steps: list[Step] = []
    late: list[Request] = []
    group = [_Client() for _ in range(clients)]
    for moment in range(operations * 3):
        client = rng.choice(group)
        if late and rng.random() < 0.1:
            state, _ = act(state, late.pop(rng.randrange(len(late))))
        if client.invoked is None:
            client.invoked, client.request, client.answer = moment, ask(rng, moment), None
        elif client.answer is None:
            if rng.random() < unknown:
                steps.append(Step(client.invoked, None, Action(*client.request)))
                late.append(client.request)
                client.invoked = None
            else:
                state, client.answer = act(state, client.request)
        else:
            steps.append(Step(client.invoked, moment, client.answer, client.answer.kind not in READS))
            client.invoked = None
    # What never was answered has no known outcome, done or not.
    steps += [Step(one.invoked, None, Action(*one.request)) for one in group if one.invoked is not None]
    return [step for step in steps if step.returned is not None or step.action[0] not in READS]  # type: ignore[index]


def ask_register(values: int | None) -> Callable[[Random, int], Request]:
    """Writes of that many values, or each of a value of its own."""

    def ask(rng: Random, moment: int) -> Request:
        if rng.random() < 0.5:
            return "read", None, None
        return "write", moment if values is None else rng.randrange(values), None

    return ask


def act_register(state: Hashable, request: Request) -> tuple[Hashable, Action]:
    if request[0] == "write":
        return request[1], Action(*request)
    return state, Action("read", state)


def ask_topic(rng: Random, moment: int) -> Request:
    del moment
    kind = rng.choice(["create", "create", "delete", "grow", "set", "set", "get", "get", "describe", "describe"])
    match kind:
        case "create":
            return kind, rng.randint(1, 3), (("b", 1),) if rng.random() < 0.3 else ()
        case "grow":
            return kind, rng.randint(2, 6), None
        case "set":
            return kind, rng.choice("ab"), rng.randint(1, 3)
        case "get":
            return kind, rng.choice("ab"), None
    return kind, None, None


def act_topic(state: Hashable, request: Request) -> tuple[Hashable, Action]:
    kind, argument, _ = request
    if kind == "describe":
        return state, Action(kind, state.partitions if isinstance(state, TopicState) else None)
    if kind == "get" and isinstance(state, TopicState):
        return state, Action(kind, argument, dict(state.configs).get(str(argument), UNSET))
    after = topic(state, Action(*request))
    if after is not IMPOSSIBLE:
        return after, Action(*request)
    if kind == "grow" and state is not None:
        return state, Action("not-larger", argument)
    return state, Action("exists" if kind == "create" else "missing")


def broken(rng: Random, steps: list[Step], answers: list[Hashable], absent: Hashable = None) -> list[Step]:
    """With the answer of one read changed, where there is one; `absent` is what a `get` says of what was never set."""
    reads = [place for place, step in enumerate(steps) if step.action[0] in ("read", "describe", "get")]  # type: ignore[index]
    if not reads:
        return steps
    place = rng.choice(reads)
    action = steps[place].action
    assert isinstance(action, Action)
    if action.kind == "get":
        changed = action._replace(value=rng.choice([absent, *answers]))
    else:
        changed = action._replace(argument=rng.choice([None, *answers]))
    return [*steps[:place], steps[place]._replace(action=changed), *steps[place + 1 :]]


def random_register(
    rng: Random, *, values: int | None, operations: int = 12, clients: int = 4, broken_share: float = 0.7
) -> list[Step]:
    steps = history(
        rng, ask_register(values), act_register, operations=operations, clients=clients, unknown=rng.choice([0, 0.2])
    )
    if rng.random() < broken_share:
        written: list[Hashable] = [s.action[1] for s in steps if s.action[0] == "write"]  # type: ignore[index]
        steps = broken(rng, steps, written)
    return steps


def random_topic(rng: Random, *, operations: int = 14, clients: int = 4, broken_share: float = 0.7) -> list[Step]:
    steps = history(rng, ask_topic, act_topic, operations=operations, clients=clients, unknown=rng.choice([0, 0.2]))
    return broken(rng, steps, [1, 2, 3, 4], UNSET) if rng.random() < broken_share else steps


MODELS: Final[dict[str, Model]] = {"register": register, "topic": topic}

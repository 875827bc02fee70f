"""Histories with a linearization and without, planted and random; Porcupine is the judge of the judge."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from itertools import permutations
from random import Random

import pytest
from concurrent_objects import MODELS, READS, random_register, random_topic
from porcupine import judge_with_porcupine

from penstock.chaos.checkers.linearizability import IMPOSSIBLE, Model, Step, evidence, linearize
from penstock.chaos.checkers.object_models import UNSET, Action, TopicState, register, topic
from penstock.chaos.checkers.register_zones import Cluster, violations


def _random() -> Random:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", Random().randrange(1 << 32)))
    print(f"replay: PENSTOCK_TEST_SEED={seed} pytest {__file__}")  # noqa: T201 - pytest shows it when the test fails
    return Random(seed)


def write(invoked: int, returned: int | None, value: int) -> Step:
    return Step(invoked, returned, Action("write", value))


def read(invoked: int, returned: int, value: int | None) -> Step:
    return Step(invoked, returned, Action("read", value), is_change=False)


STALE = [write(0, 1, 1), write(2, 3, 2), read(4, 5, 1)]


def test_a_read_of_an_overwritten_value_has_no_place() -> None:
    assert linearize([*STALE[:2], read(4, 5, 2)], register).outcome == "linearizable"
    found = linearize(STALE, register)
    assert (found.outcome, found.end, found.states) == ("non-linearizable", 5, (2,))


def test_the_evidence_leaves_out_what_does_not_matter() -> None:
    steps = [write(n, n + 1, n) for n in range(0, 40, 2)]
    steps += [read(40, 41, 38), read(42, 43, 30), read(44, 45, 12)]
    found = linearize(steps, register)
    assert found.end == 43, "the smallest prefix, though a later read has no place either"
    proof = evidence(steps, register, 43)
    assert linearize(proof, register).outcome == "non-linearizable"
    assert read(42, 43, 30) in proof
    assert len(proof) <= 3


def test_operations_that_overlap_take_effect_in_any_order() -> None:
    steps = [write(0, 9, 1), write(1, 8, 2), read(2, 3, 1), read(4, 5, 2)]
    assert linearize(steps, register).outcome == "linearizable"
    assert linearize([*steps, read(6, 7, 1)], register).outcome == "non-linearizable"


def test_an_unknown_outcome_takes_effect_later_or_never_but_not_twice() -> None:
    lost = write(0, None, 1)
    assert linearize([lost, write(2, 3, 2), read(4, 5, 2)], register).outcome == "linearizable"
    assert linearize([lost, write(2, 3, 2), read(4, 5, 2), read(6, 7, 1)], register).outcome == "linearizable"
    again = [lost, write(2, 3, 2), read(4, 5, 1), write(6, 7, 3), read(8, 9, 1)]
    assert linearize(again, register).outcome == "non-linearizable"


def test_an_operation_has_no_effect_before_it_is_invoked() -> None:
    assert linearize([read(0, 1, 1), write(2, 3, 1)], register).outcome == "non-linearizable"
    assert linearize([read(0, 1, 1), write(2, None, 1)], register).outcome == "non-linearizable"


def test_a_search_that_is_too_long_is_unknown() -> None:
    steps = [*(write(n, 20 + n, n) for n in range(10)), read(40, 41, 99)]
    assert linearize(steps, register).outcome == "non-linearizable"
    assert linearize(steps, register, bound=100).outcome == "unknown"


def test_a_write_of_the_value_that_is_there_may_still_come_later() -> None:
    steps = [write(0, 1, 1), write(2, 9, 1), write(3, 4, 2), read(5, 6, 1)]
    assert linearize(steps, register).outcome == "linearizable"


@pytest.mark.parametrize(
    ("actions", "possible"),
    [
        ([Action("missing"), Action("create", 3, ()), Action("exists"), Action("describe", 3)], True),
        ([Action("create", 3, ()), Action("create", 3, ())], False),
        ([Action("create", 3, ()), Action("missing")], False),
        ([Action("create", 3, ()), Action("grow", 5), Action("describe", 3)], False),
        ([Action("create", 3, ()), Action("grow", 3)], False),
        ([Action("create", 3, ()), Action("not-larger", 4)], False),
        ([Action("create", 3, (("a", 1),)), Action("get", "a", 1), Action("get", "b", UNSET)], True),
        ([Action("create", 3, ()), Action("set", "a", 1), Action("get", "a", UNSET)], False),
        ([Action("create", 3, ()), Action("set", "a", 1), Action("delete"), Action("create", 1, ()),
          Action("get", "a", 1)], False),
        ([Action("create", 3, ()), Action("delete"), Action("describe", None), Action("missing")], True),
    ],
)  # fmt: skip
def test_the_model_of_a_topic(actions: Sequence[Action], possible: bool) -> None:
    steps = [Step(2 * n, 2 * n + 1, action, action.kind not in READS) for n, action in enumerate(actions)]
    assert (linearize(steps, topic).outcome == "linearizable") is possible


def test_a_refusal_does_not_change_a_topic() -> None:
    state = TopicState(3, (("a", 1),))
    assert topic(state, Action("exists")) == state
    assert topic(None, Action("exists")) is IMPOSSIBLE


def _has_order(steps: Sequence[Step], model: Model) -> bool:
    """By trying all orders of all choices: what linearizability means."""
    known = [step for step in steps if step.returned is not None]
    unknown = [step for step in steps if step.returned is None]
    for chosen in range(1 << len(unknown)):
        taken = [*known, *(step for n, step in enumerate(unknown) if chosen >> n & 1)]
        for order in permutations(taken):
            if all(
                later.returned is None or later.returned > earlier.invoked
                for n, earlier in enumerate(order)
                for later in order[n + 1 :]
            ):
                state: Hashable = None
                for step in order:
                    state = model(state, step.action)
                    if state is IMPOSSIBLE:
                        break
                else:
                    return True
    return False


def test_random_histories_are_judged_as_by_trying_every_order() -> None:
    rng = _random()
    outcomes = set()
    for _ in range(400):
        name = rng.choice(["register", "topic"])
        steps = (
            random_register(rng, values=3, operations=5, clients=3)
            if name == "register"
            else random_topic(rng, operations=5, clients=3)
        )
        found = linearize(steps, MODELS[name])
        assert (found.outcome == "linearizable") is _has_order(steps, MODELS[name]), steps
        if found.end is not None:
            known = [step for step in steps if step.invoked < found.end]
            before = [s if s.returned and s.returned < found.end else s._replace(returned=None) for s in known]
            assert _has_order(before, MODELS[name]), "a smaller prefix has no order either"
            proof = evidence(steps, MODELS[name], found.end)
            assert {step.returned for step in proof} >= {found.end}
        outcomes.add(found.outcome)
    assert outcomes == {"linearizable", "non-linearizable"}, "the generator makes both"


@pytest.mark.thorough
def test_the_zones_of_a_register_say_what_the_search_says() -> None:
    rng = _random()
    outcomes = set()
    for _ in range(3_000):
        steps = random_register(rng, values=None)
        clusters: dict[Hashable, Cluster] = {None: Cluster(None)}
        for step in steps:
            assert isinstance(step.action, Action)
            if step.action.kind == "write":
                returned = float("inf") if step.returned is None else step.returned
                clusters[step.action.argument] = Cluster(
                    step.action.argument, step.invoked, returned, is_acknowledged=step.returned is not None
                )
        for step in steps:
            assert isinstance(step.action, Action)
            if step.action.kind == "read" and step.returned is not None:
                clusters[step.action.argument].read(step.invoked, step.returned)
        expected = linearize(steps, register).outcome
        assert (not list(violations(clusters))) is (expected == "linearizable"), steps
        outcomes.add(expected)
    assert outcomes == {"linearizable", "non-linearizable"}, "the generator makes both"


@pytest.mark.thorough
def test_porcupine_says_the_same() -> None:
    rng = _random()
    histories: list[tuple[str, list[Step]]] = []
    for _ in range(1_500):
        values = rng.choice([None, 2, 4])
        histories.append(("register", random_register(rng, values=values, operations=25, clients=rng.randint(2, 5))))
        histories.append(("topic", random_topic(rng, operations=25, clients=rng.randint(2, 5))))
    outcomes = [linearize(steps, MODELS[name]).outcome for name, steps in histories]
    answers = judge_with_porcupine(histories)
    assert {*outcomes} == {"linearizable", "non-linearizable"}, "the generator makes both, and no search is too long"
    for (_, steps), outcome, answer in zip(histories, outcomes, answers, strict=True):
        assert (outcome == "linearizable") is answer, steps

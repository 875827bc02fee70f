"""What a simulated run is made of: by the seed, unless an option fixes it, and so that the options replay it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from penstock.chaos.simulation.cluster.profiles import DAMAGE, FAULTS, KINDS, PROFILES, Profile
from penstock.chaos.simulation.cluster.shapes import Choices, shape_of

SEEDS = range(300)


def test_seeds_draw_every_kind_of_cluster() -> None:
    shapes = [shape_of(seed, Choices()) for seed in SEEDS]
    assert {len(shape.node_ids) for shape in shapes} >= {3, 4, 5, 6, 7}
    assert {shape.broker_count for shape in shapes} == {0, 1, 2, 3}
    assert {shape.directory_count for shape in shapes} == {1, 2, 3}
    assert {shape.has_transactions for shape in shapes} == {True, False}
    assert {shape.has_compaction for shape in shapes} == {True, False}
    assert {"all", "faults", "restarts", "deletes", "disks", "pauses", "operator", "zombies"} <= {
        shape.profile_name for shape in shapes
    }


def test_an_option_fixes_its_part_and_leaves_the_others_to_the_seed() -> None:
    for seed in SEEDS:
        drawn = shape_of(seed, Choices())
        fixed = shape_of(seed, Choices(nodes=3, profile="restarts"))
        assert (fixed.voter_count, fixed.profile_name) == (3, "restarts")
        assert (fixed.directory_count, fixed.member_counts, fixed.has_transactions) == (
            drawn.directory_count, drawn.member_counts, drawn.has_transactions
        )  # fmt: skip


@pytest.mark.parametrize("members", [None, 3])
def test_the_options_of_a_shape_give_the_same_shape(members: int | None) -> None:
    for seed in SEEDS:
        shape = shape_of(seed, Choices(members=members, faults_s=7.5))
        words = shape.options.split()
        values = dict(pairwise(words))
        again = Choices(
            nodes=int(values["--nodes"]),
            brokers=int(values["--brokers"]),
            log_dirs=int(values["--log-dirs"]),
            members=int(values["--members"]) if "--members" in values else None,
            transactions="--transactions" in words,
            compaction="--compaction" in words,
            tiers="--tiers" in words,
            profile=values["--profile"],
            faults_s=float(values["--faults-s"]),
        )
        assert shape_of(seed, again) == shape


def test_a_profile_weights_the_kinds_that_it_names_and_the_others_alike() -> None:
    profile = Profile(about="", weights={"kill": 3}, others=0.5)
    assert {profile.weight(kind) for kind in KINDS - {"kill"}} == {0.5}
    assert profile.weight("kill") == 3
    assert {PROFILES["all"].weight(kind) for kind in KINDS - {*DAMAGE}} == {1}
    assert {PROFILES["all"].weight(kind) for kind in DAMAGE} == {0}
    assert {PROFILES["quiet"].weight(kind) for kind in KINDS} == {0}
    assert {PROFILES["faults"].weight(kind) for kind in FAULTS} == {1}


def test_a_profile_of_a_kind_that_nothing_does_is_refused() -> None:
    with pytest.raises(AssertionError, match="no such kinds"):
        Profile(about="", weights={"earthquake": 1})

"""The log directories of a node: locked, formatted, and the marks in them."""

from contextlib import suppress
from random import Random

import pytest
from node_disk import node_disk, open_directories

from penstock.protocol.errors import ConfigError


def test_first_start_formats_each_directory_with_an_id_of_its_own() -> None:
    with node_disk("/a", "/b/c") as node:
        assert open_directories(node.manager, "cluster") == "cluster"
        ids = [directory.id for directory in node.manager.directories]
        assert len(set(ids)) == 2
        properties = node.files.read("/b/c/meta.properties").decode()
        assert properties.startswith("version=1\ncluster.id=cluster\nnode.id=1\ndirectory.id=")
        node.manager.directories.unlock()
        again = node.new_manager()
        assert open_directories(again) == "cluster", "the directories know the cluster"
        assert [directory.id for directory in again.directories] == ids


def test_cluster_id_is_drawn_for_a_new_cluster() -> None:
    with node_disk() as node:
        assert len(open_directories(node.manager)) == 22


def test_metadata_directory_is_formatted_but_holds_no_logs() -> None:
    with node_disk() as node:
        manager = node.new_manager(metadata_log_dir="/metadata")
        open_directories(manager, "cluster")
        assert "meta.properties" in node.names("/metadata")
        assert [directory.path for directory in manager.directories] == ["/data"]
        node.files.fail("lock", under="/metadata")
        manager.directories.unlock()
        with pytest.raises(ConfigError, match="Metadata log directory /metadata cannot be used"):
            open_directories(node.new_manager(metadata_log_dir="/metadata"), "cluster")


def test_directory_of_another_cluster_or_node_is_refused_and_left_unlocked() -> None:
    with node_disk() as node:
        node.start()
        node.stop()
        with pytest.raises(ConfigError, match="belongs to cluster cluster, not to other"):
            open_directories(node.new_manager(), "other")
        with pytest.raises(ConfigError, match="belongs to node 1, not to node 2"):
            open_directories(node.new_manager(node_id=2), "cluster")
        node.start()
        with pytest.raises(ConfigError, match="in use by another node"):
            open_directories(node.new_manager(), "cluster")


def test_directory_with_something_else_in_it_is_refused() -> None:
    with node_disk() as node:
        node.files.make_directories("/data/holiday-photos")
        with pytest.raises(ConfigError, match="not empty"):
            open_directories(node.new_manager(), "cluster")


def test_interrupted_first_start_is_completed_by_the_next() -> None:
    with node_disk() as node:
        for operations in range(20):
            node.files.fail(skip=operations, count=None)
            with suppress(ConfigError):
                open_directories(node.new_manager(), "cluster")
            node.files.heal()
            node.files.crash(Random(operations))
        node.start()


def test_one_directory_without_the_mark_makes_the_stop_unclean() -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        node.stop(broker_epoch=41)
        node.files.remove("/b/.kafka_cleanshutdown")
        manager = node.new_manager()
        open_directories(manager, "cluster")
        assert manager.directories.previous_broker_epoch() == -1


def test_mark_of_a_clean_stop_that_cannot_be_read_takes_its_directory_offline() -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        node.stop(broker_epoch=41)
        open_directories(node.manager, "cluster")
        node.files.fail("read", under="/a/.kafka_cleanshutdown")
        assert node.manager.directories.previous_broker_epoch() == -1
        assert [directory.is_online for directory in node.manager.directories] == [False, True]
        node.files.fail("read", under="/b/.kafka_cleanshutdown")
        with pytest.raises(ConfigError, match="No log directory can be used"):
            node.manager.directories.previous_broker_epoch()

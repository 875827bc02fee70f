"""The command `penstock`; each subcommand is loaded when it is called."""

import difflib
import errno
import importlib
import os
import sys
from collections.abc import Mapping
from typing import Final

import click
from msgspec import Struct

from . import __version__


class _Subcommand(Struct, frozen=True):
    module: str
    attribute: str
    # Said here as well as in the module, so that `penstock --help` loads none of them.
    help: str


class _Subgroup(Struct, frozen=True):
    """Commands of several modules under one word."""

    help: str
    commands: Mapping[str, _Subcommand]


_SUBCOMMANDS: Final[Mapping[str, _Subcommand | _Subgroup]] = {
    "start": _Subcommand(".broker.node.start_command", "start", "Run one node, or one per core, in the foreground."),
    "up": _Subcommand(".local.up_command", "up", "Start a cluster on this machine."),
    "down": _Subcommand(".local.down_command", "down", "Stop a cluster that `up` started."),
    "node": _Subcommand(
        ".local.node_commands", "node", "List, start, stop, kill, pause and resume nodes of a cluster of `up`."
    ),
    "logs": _Subcommand(".local.logs_command", "logs", "Show the log of a node of a cluster of `up`."),
    "cluster": _Subgroup(
        "What concerns a cluster as a whole.",
        {"new-id": _Subcommand(".local.new_id_command", "new_id", "Draw the id of a new cluster, in Kafka's form.")},
    ),
    "topic": _Subcommand(".client.topic_commands", "topic", "Create, list, describe, alter and delete topics."),
    "config": _Subcommand(
        ".client.operating.config_commands", "config", "Look at configs and change them while the cluster runs."
    ),
    "group": _Subcommand(".client.group_commands", "group", "List, describe, reset and delete consumer groups."),
    "transactions": _Subcommand(
        ".client.transaction_commands", "transactions", "List, describe and abort transactions, and find hanging ones."
    ),
    "user": _Subcommand(".client.security.user_commands", "user", "Add, list and delete users with passwords (SCRAM)."),
    "acl": _Subcommand(".client.security.acl_commands", "acl", "Add, list and remove ACLs: who may do what."),
    "quota": _Subcommand(
        ".client.security.quota_commands", "quota", "Set, list and remove quotas of users, client ids and addresses."
    ),
    "token": _Subcommand(
        ".client.security.token_commands", "token", "Create, list, renew and expire delegation tokens."
    ),
    "produce": _Subcommand(".client.produce_command", "produce", "Send lines as records."),
    "consume": _Subcommand(".client.consume_command", "consume", "Print records."),
    "quorum": _Subgroup(
        "Look at the quorum that agrees on the cluster's metadata, and look after it.",
        {
            "status": _Subcommand(
                ".client.quorum_commands", "status", "Show the leader, the voters and the brokers that follow."
            ),
            "snapshots": _Subcommand(
                ".client.quorum_commands", "snapshots", "List the snapshots of the metadata on the controllers' disks."
            ),
            "transfer": _Subcommand(
                ".broker.operator_commands.commands", "transfer", "Let another controller lead the quorum."
            ),
            "snapshot": _Subcommand(
                ".broker.operator_commands.commands",
                "snapshot",
                "Let controllers write a snapshot of the metadata now.",
            ),
        },
    ),
    "status": _Subcommand(".client.operating.status_command", "status", "Show the cluster as it is, live."),
    "doctor": _Subcommand(
        ".client.operating.doctor_command", "doctor", "Find what is wrong with a cluster or a machine, and what to do."
    ),
    "events": _Subcommand(".client.operating.events_command", "events", "Print what happened in the cluster."),
    "elect": _Subcommand(".client.operating.elect_command", "elect", "Elect leaders of partitions."),
    "reassign": _Subcommand(
        ".client.operating.reassign_commands", "reassign", "Move replicas to other brokers, by a plan."
    ),
    "drain": _Subcommand(".broker.operator_commands.drain_command", "drain", "Move leaderships off a broker."),
    "decommission": _Subcommand(
        ".client.operating.decommission_command", "decommission", "Take all replicas off a broker."
    ),
    "broker": _Subgroup(
        "What concerns one broker.",
        {
            "describe": _Subcommand(
                ".client.operating.broker_commands", "describe", "Show what a broker has and whether it may be stopped."
            ),
            "unregister": _Subcommand(
                ".client.operating.broker_commands",
                "unregister",
                "Take a broker that is gone for good out of the cluster.",
            ),
        },
    ),
    "features": _Subcommand(
        ".client.operating.feature_commands", "features", "Look at the levels of features, raise and lower them."
    ),
    "metadata": _Subcommand(
        ".quorum.inspection.commands", "metadata", "Look at the metadata that lies on a node's disk."
    ),
    "log": _Subgroup(
        "Look at the files of logs, Apache Kafka's, too; check, compact and move them.",
        {
            "dump": _Subcommand(
                ".broker.operator_commands.log_commands", "dump", "Show what lies in the files of a log."
            ),
            "verify": _Subcommand(
                ".broker.operator_commands.log_commands", "verify", "Check the files of logs against each other."
            ),
            "compact": _Subcommand(
                ".broker.operator_commands.log_compact_command", "compact", "Compact a folder that no node uses."
            ),
            "export": _Subcommand(
                ".broker.operator_commands.log_archive_commands", "export", "Write a partition into an archive."
            ),
            "import": _Subcommand(
                ".broker.operator_commands.log_archive_commands",
                "import_archive",
                "Bring an archive into an empty partition of another cluster.",
            ),
        },
    ),
    "simulate": _Subcommand(
        ".chaos.simulation.cluster.command", "simulate", "Break simulated clusters, in virtual time, from a seed."
    ),
    "chaos": _Subgroup(
        "Break clusters, and judge what they promised.",
        {
            "judge": _Subcommand(".chaos.runs.judge_command", "judge", "Say what a history of a run shows."),
            "run": _Subcommand(
                ".chaos.runs.run_command", "run", "Break a cluster while clients use it, and judge what they saw."
            ),
            "matrix": _Subcommand(
                ".chaos.runs.matrix_command", "matrix", "Run every workload under every mix of faults."
            ),
            "list": _Subcommand(".chaos.runs.list_command", "list_parts", "List workloads and faults."),
            "calibrate": _Subcommand(
                ".chaos.runs.calibrate_command", "calibrate", "Look whether the known bugs are found."
            ),
            "report": _Subcommand(".chaos.runs.report_command", "report", "Draw the page of a run."),
            "install-toxiproxy": _Subcommand(
                ".chaos.links.install_command", "install_toxiproxy", "Build the proxy that breaks links between nodes."
            ),
        },
    ),
    "demo": _Subcommand(".chaos.demo.command", "demo", "Stream real records through a cluster and read them back."),
    "pipeline": _Subgroup(
        "Stream topics through Spark: lake, windows, joins, tables, mirrors.",
        {
            "jobs": _Subcommand(".pipeline.commands", "jobs", "List the jobs."),
            "run": _Subcommand(".pipeline.commands", "run", "Run a job until it ends or is stopped."),
            "submit": _Subcommand(".pipeline.commands", "submit", "Print the line that runs a job on a Spark cluster."),
            "jars": _Subcommand(".pipeline.commands", "jars", "Fetch the jars of Spark's Kafka connector."),
            "move-group": _Subcommand(
                ".pipeline.move_group_command", "move_group", "Commit a mirror's consumer groups in its sink."
            ),
            "demo": _Subcommand(
                ".chaos.pipeline_demo.command", "demo", "Stream flights and weather through jobs, compared with pandas."
            ),
        },
    ),
    "bench": _Subcommand(".bench.command", "bench", "Measure a cluster, or Penstock and Apache Kafka side by side."),
    "completion": _Subcommand(
        ".client.completion_command", "completion", "Print the script that completes commands in a shell."
    ),
}


class _LazyGroup(click.Group):
    # By name; set once when the group is made.
    table: Mapping[str, _Subcommand | _Subgroup] = _SUBCOMMANDS

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [*self.table]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self.table.get(cmd_name)
        if isinstance(found, _Subgroup):
            group = _LazyGroup(cmd_name, help=found.help)
            group.table = found.commands
            return group
        if found is None:
            return None
        module = importlib.import_module(found.module, __package__)
        command: click.Command = getattr(module, found.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        nearest = difflib.get_close_matches(args[0], self.table, n=1)
        if nearest and args[0] not in self.list_commands(ctx):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {nearest[0]!r}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """What the system refuses any command is one sentence: a full disk behind standard output, for instance."""
        try:
            found: object = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            if error.errno == errno.EPIPE:
                # The reader of a pipe went away: click ends without a word.
                raise
            _discard_output()
            where = "" if error.filename is None else f" ({error.filename})"
            raise click.ClickException(f"{error.strerror or error}{where}.") from error
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.table[name].help) for name in self.list_commands(ctx)])


def _discard_output() -> None:
    """What is still to be written cannot be: without this the interpreter would try again when it ends, and say so."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="penstock")
def main() -> None:
    """Run, fill, read and look after a Penstock cluster, or any cluster that speaks the Kafka protocol.

    Exit status: 0 done, 1 it could not be done, 2 it was not asked for in a way that can be understood.
    """

"""The suites there are, in the order in which they are run."""

from __future__ import annotations

from .java_tools.cluster_suite import JavaToolsClusterSuite
from .java_tools.suite import JavaToolsSuite
from .kafka_integration.core_suite import KafkaCoreSuite
from .kafka_integration.suite import KafkaIntegrationSuite
from .kafka_python import KafkaPythonSuite
from .librdkafka.suite import LibrdkafkaSaslSuite, LibrdkafkaSuite
from .suite import Suite
from .tool_output.suite import ToolOutputSuite

SUITES: tuple[Suite, ...] = (
    KafkaPythonSuite(),
    LibrdkafkaSuite(),
    LibrdkafkaSaslSuite(),
    JavaToolsSuite(),
    JavaToolsClusterSuite(),
    ToolOutputSuite(),
    KafkaIntegrationSuite(),
    KafkaCoreSuite(),
)

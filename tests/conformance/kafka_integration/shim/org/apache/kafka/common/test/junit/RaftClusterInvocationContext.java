package org.apache.kafka.common.test.junit;

import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.opentest4j.TestAbortedException;

import java.util.List;

import penstock.conformance.OutsideCluster;
import penstock.conformance.TimeLimit;

/** Stands before the class of this name on the class path: the tests get a cluster that runs outside their process. */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String name;
    private final ClusterConfig config;
    private final boolean isCombined;

    public RaftClusterInvocationContext(String baseDisplayName, ClusterConfig config, boolean isCombined) {
        this.name = baseDisplayName;
        this.config = config;
        this.isCombined = isCombined;
    }

    @Override
    public String getDisplayName(int invocation) {
        return name + " [" + invocation + "] " + type() + " " + String.join(",", config.displayTags());
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        RaftClusterInstance cluster = new RaftClusterInstance(config, type());
        return List.of(
            (ExecutionCondition) context -> condition(),
            (BeforeEachCallback) context -> {
                if (config.isAutoStart())
                    cluster.start();
            },
            (AfterEachCallback) context -> cluster.stop(),
            new TimeLimit(),
            new ClusterInstanceParameterResolver(cluster));
    }

    private Type type() {
        return isCombined ? Type.CO_KRAFT : Type.KRAFT;
    }

    private ConditionEvaluationResult condition() {
        // The two differ in where the controllers run, which nobody sees from outside.
        if (isCombined && config.clusterTypes().contains(Type.KRAFT))
            return ConditionEvaluationResult.disabled("the same test runs as KRAFT");
        return ConditionEvaluationResult.enabled("");
    }

    /** Some tests cast their cluster to a class of this name. */
    public static class RaftClusterInstance extends OutsideCluster {
        RaftClusterInstance(ClusterConfig config, Type type) {
            super(config, type);
        }

        public KafkaClusterTestKit getUnderlying() {
            throw new TestAbortedException("looks inside the broker's process: getUnderlying()");
        }
    }
}

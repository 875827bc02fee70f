package kafka.server;

import kafka.utils.Logging;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.fault.FaultHandler;
import penstock.conformance.ConfiguredNodes;
import scala.Option;

import java.io.File;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * Stands before the class of this name on the class path: the brokers that a test starts run outside its process. The
 * controller that the tests start themselves is left alone, and nobody asks it anything.
 */
public class KRaftQuorumImplementation implements QuorumImplementation {
    private final ControllerServer own;
    private final QuorumTestHarness harness;
    private ConfiguredNodes nodes;

    public KRaftQuorumImplementation(
        ControllerServer controllerServer,
        FaultHandlerFactory faultHandlerFactory,
        File metadataDir,
        CompletableFuture<Map<Integer, InetSocketAddress>> voters,
        String clusterId,
        Logging log,
        FaultHandler faultHandler
    ) {
        this.own = controllerServer;
        this.harness = (QuorumTestHarness) log;
    }

    public ControllerServer controllerServer() {
        return ConfiguredNodes.controller(() -> nodes);
    }

    @Override
    public KafkaBroker createBroker(KafkaConfig config, Time time, boolean startup, Option<String> threadNamePrefix) {
        if (nodes == null || nodes.started() && nodes.stopped())
            nodes = new ConfiguredNodes(harness);
        return nodes.add(config);
    }

    @Override
    public void shutdown() {
        own.shutdown();
    }
}

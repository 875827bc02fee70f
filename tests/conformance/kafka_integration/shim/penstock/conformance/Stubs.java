package penstock.conformance;

import kafka.log.LogManager;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import org.mockito.stubbing.Answer;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

import java.io.File;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Stand-ins for the broker objects that helpers of the tests touch to wait for metadata or to read a setting. What the
 * admin interface can say is answered; any other method aborts the test.
 */
final class Stubs {
    private static final Map<String, String> PARTITION_COUNT_KEYS = Map.of(
        "__consumer_offsets", "offsets.topic.num.partitions",
        "__transaction_state", "transaction.state.log.num.partitions");

    private Stubs() { }

    static Map<Integer, KafkaBroker> brokers(OutsideCluster cluster) {
        Map<Integer, KafkaBroker> brokers = new TreeMap<>();
        for (int broker = 0; broker < cluster.size(); broker++) {
            int id = broker;
            brokers.put(id, broker(KafkaBroker.class, cluster, id, Map.of(
                // Not before it is wanted: a test that has stopped all brokers asks for them to start them again.
                "config", call -> config(cluster, id),
                "boundPort", call -> cluster.port(id),
                "shutdown", call -> {
                    cluster.shutdownBroker(id);
                    return null;
                },
                "startup", call -> {
                    cluster.startBroker(id);
                    return null;
                })));
        }
        return brokers;
    }

    static KRaftMetadataCache metadataCache(OutsideCluster cluster) {
        return stub(KRaftMetadataCache.class, Map.of(
            "getAliveBrokerNodes", call -> List.copyOf(cluster.nodes()),
            "hasAliveBroker", call -> cluster.brokerIds().contains(call.<Integer>getArgument(0)),
            "getAllTopics", call -> cluster.topicIds().keySet(),
            "topicNamesToIds", call -> cluster.topicIds(),
            "getTopicId", call -> cluster.topicIds().getOrDefault(call.<String>getArgument(0), Uuid.ZERO_UUID),
            "contains", call -> call.getArgument(0) instanceof String && cluster.describe(call.getArgument(0)).isPresent(),
            "numPartitions", call -> cluster.describe(call.getArgument(0)).map(d -> d.partitions().size()),
            "getLeaderAndIsr", call -> leaderAndIsr(cluster, call.getArgument(0), call.getArgument(1))));
    }

    /** A broker of which `more` is known than what the admin interface says. */
    static <T extends KafkaBroker> T broker(Class<T> type, OutsideCluster cluster, int id, Map<String, Answer<Object>> more) {
        KRaftMetadataCache cache = metadataCache(cluster);
        Properties compacted = new Properties();
        compacted.put("cleanup.policy", "compact");
        GroupCoordinator groups = stub(GroupCoordinator.class, Map.of("groupMetadataTopicConfigs", call -> compacted));
        Answer<Object> hosted = call -> Option.apply(cluster.isHosted(id, call.getArgument(0)) ? id : null);
        LogManager logs = stub(LogManager.class, Map.of(
            "getLog", hosted,
            "liveLogDirs", call -> CollectionConverters.asScala(directories(cluster, id)).toSeq()));
        ReplicaManager replicas = stub(ReplicaManager.class, Map.of("onlinePartition", hosted));
        Map<String, Answer<Object>> known = new HashMap<>(Map.of(
            "metadataCache", call -> cache,
            "groupCoordinator", call -> groups,
            "logManager", call -> logs,
            "replicaManager", call -> replicas,
            "isShutdown", call -> cluster.isShutDown(id),
            "awaitShutdown", call -> null));
        known.putAll(more);
        return stub(type, known);
    }

    /** Empty for a caller that waits for each controller in turn; with the topic ids for one that asks by its id. */
    static Map<Integer, ControllerServer> controllers(OutsideCluster cluster) {
        Controller controller = stub(Controller.class, Map.of(
            "findAllTopicIds", call -> CompletableFuture.completedFuture(cluster.topicIds())));
        Plugin<Authorizer> plugin = plugin(cluster);
        ControllerServer server = stub(ControllerServer.class, Map.of(
            "controller", call -> controller,
            "authorizerPlugin", call -> Option.apply(plugin)));
        Map<Integer, ControllerServer> controllers = new HashMap<>() {
            @Override
            public ControllerServer get(Object id) {
                return server;
            }
        };
        if (cluster.hasAuthorizer())
            controllers.put(0, server);
        return controllers;
    }

    @SuppressWarnings("unchecked")
    static Plugin<Authorizer> plugin(OutsideCluster cluster) {
        return stub(Plugin.class, Map.of("get", call -> authorizer(cluster)));
    }

    /** Makes ACLs as a client does who may do everything. */
    static Authorizer authorizer(OutsideCluster cluster) {
        return stub(Authorizer.class, Map.of(
            "acls", call -> cluster.acls(call.getArgument(0)),
            "createAcls", call -> {
                List<AclBinding> wanted = call.getArgument(1);
                cluster.createAcls(wanted);
                return wanted.stream().map(one -> CompletableFuture.completedFuture(AclCreateResult.SUCCESS)).collect(Collectors.toList());
            },
            "deleteAcls", call -> {
                List<AclBindingFilter> unwanted = call.getArgument(1);
                return unwanted.stream().map(one -> CompletableFuture.completedFuture(deleted(cluster, one))).collect(Collectors.toList());
            }));
    }

    private static AclDeleteResult deleted(OutsideCluster cluster, AclBindingFilter filter) {
        return new AclDeleteResult(cluster.deleteAcls(List.of(filter)).stream()
            .map(AclDeleteResult.AclBindingDeleteResult::new).collect(Collectors.toList()));
    }

    private static Optional<LeaderAndIsr> leaderAndIsr(OutsideCluster cluster, String topic, int partition) {
        return cluster.describe(topic)
            .map(TopicDescription::partitions)
            .filter(partitions -> partition < partitions.size())
            .map(partitions -> partitions.get(partition))
            .filter(info -> info.leader() != null)
            .map(Stubs::leaderAndIsr);
    }

    private static LeaderAndIsr leaderAndIsr(TopicPartitionInfo info) {
        return new LeaderAndIsr(info.leader().id(), info.isr().stream().map(Node::id).collect(Collectors.toList()));
    }

    private static List<File> directories(OutsideCluster cluster, int id) {
        return Stream.of(cluster.logDirectories(id).split(",")).map(File::new).collect(Collectors.toList());
    }

    private static KafkaConfig config(OutsideCluster cluster, int id) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "process.roles", "broker",
            "node.id", String.valueOf(id),
            "log.dirs", cluster.logDirectories(id),
            "controller.quorum.voters", "3000@127.0.0.1:1",
            "controller.listener.names", "CONTROLLER",
            "listeners", "EXTERNAL://127.0.0.1:0",
            "inter.broker.listener.name", "EXTERNAL",
            "listener.security.protocol.map", "EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"));
        settings.putAll(cluster.config().serverProperties());
        settings.put("offsets.topic.replication.factor", String.valueOf(cluster.size()));
        settings.put("transaction.state.log.replication.factor", String.valueOf(cluster.size()));
        PARTITION_COUNT_KEYS.forEach((topic, key) ->
            cluster.describe(topic).ifPresent(d -> settings.put(key, String.valueOf(d.partitions().size()))));
        return new KafkaConfig(settings);
    }

    static <T> T stub(Class<T> type, Map<String, Answer<Object>> known) {
        return Mockito.mock(type, call -> {
            Answer<Object> answer = known.get(call.getMethod().getName());
            return answer == null ? unknown(call) : answer.answer(call);
        });
    }

    /** For what a test reads from a field. */
    static <T> void set(Class<T> type, String name, T object, Object value) {
        try {
            Field field = type.getDeclaredField(name);
            field.setAccessible(true);
            field.set(object, value);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Object unknown(InvocationOnMock call) {
        switch (call.getMethod().getName()) {
            case "toString":
                return "a broker outside this process";
            case "hashCode":
                return System.identityHashCode(call.getMock());
            case "equals":
                return call.getArgument(0) == call.getMock();
            default:
                throw OutsideCluster.inside(call.getMethod().getDeclaringClass().getSimpleName() + "." + call.getMethod().getName() + "()");
        }
    }
}

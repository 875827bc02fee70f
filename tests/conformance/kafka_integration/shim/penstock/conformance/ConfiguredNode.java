package penstock.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import kafka.network.SocketServer;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import kafka.server.QuorumTestHarness;
import kafka.server.SharedServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.authenticator.CredentialCache;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ResultOrError;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.security.CredentialProvider;
import org.apache.kafka.server.authorizer.Authorizer;
import org.mockito.stubbing.Answer;
import org.opentest4j.TestAbortedException;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

import java.lang.reflect.Field;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/** One node outside this process, with the listeners and the properties that a test of Apache Kafka's core gives its broker. */
public final class ConfiguredNode extends OutsideCluster {
    // The classes that tests name to say who clients are, and what they say; `principal.builder.class`.
    private static final Map<String, Map<String, String>> PRINCIPALS = Map.of(
        "kafka.api.AbstractAuthorizerIntegrationTest$PrincipalBuilder", Map.of("CLIENT", "User:client", "BROKER", "User:broker"));
    private static final String HARNESS = "User:harness";

    private final KafkaConfig settings;
    private final QuorumTestHarness harness;
    private JsonNode ports;

    public ConfiguredNode(KafkaConfig settings, QuorumTestHarness harness) {
        super(ClusterConfig.defaultBuilder().build(), Type.KRAFT);
        this.settings = settings;
        this.harness = harness;
    }

    public static TestAbortedException several() {
        return new TestAbortedException("starts several brokers one by one");
    }

    @Override
    public void start() {
        Map<String, String> listeners = new TreeMap<>();
        for (Endpoint endpoint : CollectionConverters.asJava(settings.effectiveAdvertisedBrokerListeners()))
            listeners.put(endpoint.listener(), endpoint.securityProtocol().name);
        List<String> sasl = listeners.entrySet().stream().filter(one -> one.getValue().startsWith("SASL"))
            .map(Map.Entry::getKey).collect(Collectors.toList());
        Map<String, String> properties = ServerProperties.of(settings, sasl);
        String builder = properties.remove("principal.builder.class");
        if (builder != null && !PRINCIPALS.containsKey(builder))
            throw new TestAbortedException("needs a class of its own inside the broker: " + builder);
        if (properties.containsKey("authorizer.class.name"))
            properties.merge("super.users", HARNESS, (given, more) -> given + ";" + more);
        JsonNode answer = Hook.ask("node", Map.of(
            "properties", properties,
            "listeners", listeners,
            "principals", builder == null ? Map.of() : PRINCIPALS.get(builder),
            "disks", settings.logDirs().size(),
            "scram", scramArguments()));
        ports = answer.get("ports");
        Map<String, Object> ours = new HashMap<>();
        answer.get("client").fields().forEachRemaining(one -> ours.put(one.getKey(), one.getValue().asText()));
        serve(ours.get(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG).toString(), answer.get("log_dirs"), Admin.create(ours));
    }

    /** A stand-in for the broker that the test knows. */
    public BrokerServer broker() {
        MetadataLoader loader = Stubs.stub(MetadataLoader.class, Map.of("lastAppliedOffset", call -> Long.MAX_VALUE));
        SharedServer shared = Stubs.stub(SharedServer.class, Map.of("loader", call -> loader));
        Answer<Object> port = call -> ports.get(call.<ListenerName>getArgument(0).value()).asInt();
        SocketServer sockets = Stubs.stub(SocketServer.class, Map.of("boundPort", port));
        CredentialCache credentials = Stubs.stub(CredentialCache.class, Map.of("cache", call -> scramUsers(call.getArgument(0))));
        CredentialProvider provider = Stubs.stub(CredentialProvider.class, Map.of("credentialCache", call -> credentials));
        DelegationTokenCache tokens = Stubs.stub(DelegationTokenCache.class, Map.of("tokens", call -> tokens()));
        Plugin<Authorizer> plugin = Stubs.plugin(this);
        Map<String, Answer<Object>> more = new HashMap<>(Map.of(
            "config", call -> settings,
            "boundPort", port,
            "sharedServer", call -> shared,
            "socketServer", call -> sockets,
            "credentialProvider", call -> provider,
            "tokenCache", call -> tokens,
            "brokerState", call -> BrokerState.RUNNING,
            "authorizerPlugin", call -> Option.apply(plugin)));
        more.put("startup", call -> {
            start();
            return null;
        });
        more.put("shutdown", call -> {
            stop();
            return null;
        });
        return Stubs.broker(BrokerServer.class, this, settings.nodeId(), more);
    }

    /** A stand-in for the controller, which is the same node. */
    public static ControllerServer controller(Supplier<ConfiguredNode> node) {
        Controller controller = Stubs.stub(Controller.class, Map.of(
            "isActive", call -> true,
            "findAllTopicIds", call -> CompletableFuture.completedFuture(node.get().topicIds()),
            "findTopicIds", call -> CompletableFuture.completedFuture(found(node.get().topicIds(), call.getArgument(1)))));
        RaftLog log = Stubs.stub(RaftLog.class, Map.of("endOffset", call -> new LogOffsetMetadata(0)));
        kafka.raft.KafkaRaftManager<?> raft = Stubs.stub(kafka.raft.KafkaRaftManager.class, Map.of("raftLog", call -> log));
        return Stubs.stub(ControllerServer.class, Map.of(
            "controller", call -> controller,
            "raftManager", call -> raft,
            "authorizerPlugin", call -> Option.apply(Stubs.plugin(node.get()))));
    }

    private static Map<String, ResultOrError<Uuid>> found(Map<String, Uuid> ids, Collection<String> names) {
        return names.stream().collect(Collectors.toMap(name -> name, name -> ids.containsKey(name)
            ? ResultOrError.of(ids.get(name)) : ResultOrError.of(new ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION))));
    }

    private CredentialCache.Cache<?> scramUsers(String mechanism) {
        ScramCredential some = new ScramCredential(new byte[0], new byte[0], new byte[0], 4096);
        return Stubs.stub(CredentialCache.Cache.class, Map.of("get", call -> scramMechanisms(call.getArgument(0)).contains(mechanism) ? some : null));
    }

    /** Those that a test wants set before the first start, as `kafka-storage format --add-scram` takes them. */
    private List<String> scramArguments() {
        Formatter formatter = new Formatter();
        harness.addFormatterSettings(formatter);
        try {
            Field field = Formatter.class.getDeclaredField("scramArguments");
            field.setAccessible(true);
            return List.copyOf((Collection<String>) field.get(formatter));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}

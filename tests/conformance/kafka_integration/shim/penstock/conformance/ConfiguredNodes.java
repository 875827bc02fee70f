package penstock.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import kafka.network.SocketServer;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.QuorumTestHarness;
import kafka.server.SharedServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.authenticator.CredentialCache;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.token.delegation.TokenInformation;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ResultOrError;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
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
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/** Nodes outside this process, with the listeners and the properties that a test of Apache Kafka's core gives its brokers. */
public final class ConfiguredNodes extends OutsideCluster {
    private static final String BUILDER = "principal.builder.class";
    // The classes that tests name to say who clients are, and what they say, by listener.
    private static final Map<String, Map<String, String>> PRINCIPALS = Map.of(
        "kafka.api.AbstractAuthorizerIntegrationTest$PrincipalBuilder", Map.of("CLIENT", "User:client", "BROKER", "User:broker"),
        "kafka.api.PlaintextEndToEndAuthorizationTest$TestClientPrincipalBuilder", Map.of("CLIENT", "User:client"),
        "kafka.api.PlaintextEndToEndAuthorizationTest$TestServerPrincipalBuilder", Map.of("SERVER", "User:server"));
    // One that makes a name of a certificate's, as `ssl.principal.mapping.rules` does.
    private static final Map<String, String> MAPPING_RULES = Map.of(
        "kafka.api.SslEndToEndAuthorizationTest$TestPrincipalBuilder",
        "RULE:^O=A server,CN=.*$/server/,RULE:^O=A .*,CN=super-user$/server/,DEFAULT");
    private static final String HARNESS = "User:harness";

    private final List<KafkaConfig> settings = new ArrayList<>();
    private final QuorumTestHarness harness;
    private final List<NodeMetrics> metrics = new ArrayList<>();
    private JsonNode ports;

    public ConfiguredNodes(QuorumTestHarness harness) {
        super(ClusterConfig.defaultBuilder().build(), Type.KRAFT);
        this.harness = harness;
    }

    /** All of them at once, when the test first wants to reach one: it starts them one by one, and each waits for the others. */
    @Override
    public void start() {
        if (started())
            return;
        Map<String, String> listeners = new TreeMap<>();
        for (Endpoint endpoint : CollectionConverters.asJava(settings.get(0).effectiveAdvertisedBrokerListeners()))
            listeners.put(endpoint.listener(), endpoint.securityProtocol().name);
        List<String> sasl = listeners.entrySet().stream().filter(one -> one.getValue().startsWith("SASL"))
            .map(Map.Entry::getKey).collect(Collectors.toList());
        Map<String, String> principals = new HashMap<>();
        List<Object> brokers = new ArrayList<>();
        for (KafkaConfig config : settings) {
            Map<String, String> properties = ServerProperties.of(config, sasl);
            principals.putAll(principals(properties));
            if (properties.containsKey("authorizer.class.name"))
                properties.merge("super.users", HARNESS, (given, more) -> given + ";" + more);
            brokers.add(Map.of("properties", properties, "disks", config.logDirs().size()));
        }
        JsonNode answer = Hook.ask("nodes", Map.of(
            "brokers", brokers, "listeners", listeners, "principals", principals, "scram", scramArguments()));
        ports = answer.get("ports");
        answer.get("metrics").forEach(page -> metrics.add(new NodeMetrics(page.asText())));
        Map<String, Object> ours = new HashMap<>();
        answer.get("client").fields().forEachRemaining(one -> ours.put(one.getKey(), one.getValue().asText()));
        serve(ours.get(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG).toString(), answer.get("log_dirs"), Admin.create(ours));
    }

    /** Who clients are, by listener; without the properties that say so. */
    private static Map<String, String> principals(Map<String, String> properties) {
        Map<String, String> principals = new HashMap<>();
        for (String key : List.copyOf(properties.keySet())) {
            if (!key.equals(BUILDER) && !key.endsWith("." + BUILDER))
                continue;
            String builder = properties.remove(key);
            if (MAPPING_RULES.containsKey(builder))
                properties.put("ssl.principal.mapping.rules", MAPPING_RULES.get(builder));
            else if (PRINCIPALS.containsKey(builder))
                principals.putAll(PRINCIPALS.get(builder));
            else
                throw new TestAbortedException("needs a class of its own inside the broker: " + builder);
        }
        return principals;
    }

    @Override
    Collection<AclBinding> acls(AclBindingFilter filter) {
        return everywhere(super.acls(filter));
    }

    @Override
    Collection<TokenInformation> tokens() {
        return everywhere(super.tokens());
    }

    @Override
    Set<String> scramMechanisms(String user) {
        return everywhere(super.scramMechanisms(user));
    }

    /** What one broker has said, once all know as much: the tests ask each of them. */
    private <T> T everywhere(T answer) {
        long known = metrics.stream().mapToLong(NodeMetrics::applied).max().orElseThrow();
        waitFor(() -> metrics.stream().allMatch(node -> node.applied() >= known), "all brokers have applied the metadata record " + known);
        return answer;
    }

    /** A stand-in for one more broker that the test knows. */
    public BrokerServer add(KafkaConfig config) {
        if (started())
            throw new TestAbortedException("starts a broker anew");
        int index = settings.size();
        settings.add(config);
        MetadataLoader loader = Stubs.stub(MetadataLoader.class, Map.of("lastAppliedOffset", call -> Long.MAX_VALUE));
        SharedServer shared = Stubs.stub(SharedServer.class, Map.of("loader", call -> loader));
        Answer<Object> port = call -> {
            start();
            return ports.get(index).get(call.<ListenerName>getArgument(0).value()).asInt();
        };
        SocketServer sockets = Stubs.stub(SocketServer.class, Map.of("boundPort", port));
        CredentialCache credentials = Stubs.stub(CredentialCache.class, Map.of("cache", call -> scramUsers(call.getArgument(0))));
        DelegationTokenCache tokens = Stubs.stub(DelegationTokenCache.class, Map.of("tokens", call -> tokens()));
        CredentialProvider provider = new CredentialProvider(List.of(), tokens);
        Stubs.set(CredentialProvider.class, "credentialCache", provider, credentials);
        Plugin<Authorizer> plugin = Stubs.plugin(this);
        KRaftMetadataCache cache = Stubs.metadataCache(this);
        KafkaApis apis = Stubs.stub(KafkaApis.class, Map.of(
            "authorizerPlugin", call -> Option.apply(plugin),
            "metadataCache", call -> cache));
        Map<String, Answer<Object>> more = new HashMap<>(Map.of(
            "config", call -> config,
            "boundPort", port,
            "sharedServer", call -> shared,
            "socketServer", call -> sockets,
            "credentialProvider", call -> provider,
            "tokenCache", call -> tokens,
            "brokerState", call -> BrokerState.RUNNING,
            "authorizerPlugin", call -> Option.apply(plugin)));
        Metrics known = NodeMetrics.of(() -> metrics);
        more.put("metrics", call -> known);
        more.put("dataPlaneRequestProcessor", call -> apis);
        more.put("startup", call -> null);
        more.put("shutdown", call -> {
            stop();
            return null;
        });
        return Stubs.broker(BrokerServer.class, this, index, more);
    }

    /** A stand-in for the controller, which is the same node. */
    public static ControllerServer controller(Supplier<ConfiguredNodes> node) {
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

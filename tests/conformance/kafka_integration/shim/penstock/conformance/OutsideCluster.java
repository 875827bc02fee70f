package penstock.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.security.token.delegation.TokenInformation;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.opentest4j.TestAbortedException;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;

/**
 * A cluster of its own for one test, in processes outside this one. What a test asks of it is asked through the admin
 * interface; what only the inside of a broker could say aborts the test, which counts it as skipped.
 *
 * A cluster has at most as many brokers as the hook starts; replication factors are cut to that number.
 */
public class OutsideCluster implements ClusterInstance {
    private static final long DEADLINE_MS = 30_000;
    private static final long POLL_MS = 20;

    private interface Question<T> {
        T put(Admin admin) throws InterruptedException, ExecutionException;
    }

    private final ClusterConfig config;
    private final Type type;
    private String bootstrap;
    private JsonNode logDirectories;
    private int size;
    private Admin admin;
    private boolean stopped;
    private final Set<Integer> shutDown = new HashSet<>();

    protected OutsideCluster(ClusterConfig config, Type type) {
        this.config = config;
        this.type = type;
    }

    static TestAbortedException inside(String what) {
        return new TestAbortedException("looks inside the broker's process: " + what);
    }

    @Override
    public void start() {
        if (started())
            return;
        JsonNode answer = Hook.ask("up", Map.of(
            "brokers", config.numBrokers(),
            "disks", config.numDisksPerBroker(),
            "protocol", config.brokerSecurityProtocol().name,
            "features", features(),
            "properties", config.serverProperties(),
            "broker_properties", config.perServerOverrideProperties()));
        String clients = answer.get("bootstrap").asText();
        // Without users the brokers' own listener is where everything is allowed.
        String ours = config.brokerSecurityProtocol() == SecurityProtocol.PLAINTEXT ? answer.get("brokers_own").asText() : clients;
        serve(clients, answer.get("log_dirs"), Admin.create(setClientSaslConfig(Map.of(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, ours))));
    }

    /** The cluster is there. */
    void serve(String bootstrap, JsonNode logDirectories, Admin admin) {
        this.bootstrap = bootstrap;
        this.logDirectories = logDirectories;
        this.size = bootstrap.split(",").length;
        this.admin = admin;
        this.stopped = false;
    }

    @Override
    public void stop() {
        if (!started() || stopped)
            return;
        stopped = true;
        admin.close();
        Hook.ask("down", true);
    }

    @Override
    public boolean started() {
        return bootstrap != null;
    }

    @Override
    public boolean stopped() {
        return stopped;
    }

    @Override
    public void shutdownBroker(int id) {
        Hook.ask("stop", id);
        shutDown.add(id);
    }

    @Override
    public void startBroker(int id) {
        Hook.ask("start", id);
        shutDown.remove(id);
    }

    @Override
    public Type type() {
        return type;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public String bootstrapServers() {
        return bootstrap;
    }

    @Override
    public String clusterId() {
        return ask(a -> a.describeCluster().clusterId().get());
    }

    @Override
    public Set<Integer> brokerIds() {
        return nodes().stream().map(Node::id).collect(Collectors.toSet());
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return nodes().stream().map(Node::port).collect(Collectors.toList());
    }

    @Override
    public Set<Integer> controllerIds() {
        return ask(a -> a.describeMetadataQuorum().quorumInfo().get()).voters().stream()
            .map(v -> v.replicaId()).collect(Collectors.toSet());
    }

    @Override
    public ListenerName clientListener() {
        return config.brokerListenerName();
    }

    @Override
    public ListenerName controllerListenerName() {
        return config.controllerListenerName();
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        return Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER);
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        return Stubs.brokers(this);
    }

    @Override
    public Map<Integer, KafkaBroker> aliveBrokers() {
        return brokers();
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        return Stubs.controllers(this);
    }

    @Override
    public List<Authorizer> authorizers() {
        return List.of(Stubs.authorizer(this));
    }

    @Override
    public String bootstrapControllers() {
        throw new TestAbortedException("needs a listener of the controllers");
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }

    @Override
    public void createTopic(String topic, int partitions, short replicas, Map<String, String> configs) {
        short possible = (short) Math.min(replicas, size);
        NewTopic wanted = new NewTopic(topic, partitions, possible).configs(configs);
        ask(a -> {
            try {
                return a.createTopics(List.of(wanted)).all().get();
            } catch (ExecutionException e) {
                // One that is there will do: Kafka's own clusters do not look at the answer.
                if (e.getCause() instanceof TopicExistsException)
                    return null;
                throw e;
            }
        });
        waitTopicCreation(topic, partitions);
    }

    @Override
    public void createTopicWithAssignment(String topic, Map<Integer, List<Integer>> assignment) {
        ask(a -> a.createTopics(List.of(new NewTopic(topic, assignment))).all().get());
        waitTopicCreation(topic, assignment.size());
    }

    @Override
    public void waitForReadyBrokers() {
        waitFor(() -> nodes().size() >= size, size + " brokers are ready");
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) {
        waitFor(() -> describe(topic)
            .filter(d -> d.partitions().size() == partitions)
            .filter(d -> d.partitions().stream().allMatch(p -> p.leader() != null))
            .isPresent(), topic + " has " + partitions + " partitions with leaders");
    }

    @Override
    public void waitTopicDeletion(String topic) {
        waitFor(() -> !topicIds().containsKey(topic), topic + " is gone");
    }

    @Override
    public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) {
        Set<AccessControlEntry> wanted = new HashSet<>(entries);
        waitFor(() -> acls(filter).stream()
            .map(AclBinding::entry).collect(Collectors.toSet()).equals(wanted), "the ACLs of " + filter + " are " + entries);
    }

    @Override
    public void ensureConsistentMetadata() {
        waitForReadyBrokers();
    }

    @Override
    public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers) {
        waitForReadyBrokers();
    }

    /** Whether a test has stopped this broker, and not started it again. */
    boolean isShutDown(int broker) {
        return shutDown.contains(broker);
    }

    int size() {
        return size;
    }

    int port(int broker) {
        return nodes().stream().filter(node -> node.id() == broker).findAny().orElseThrow().port();
    }

    /** Whether a broker has a replica of the partition on one of its disks. */
    boolean isHosted(int broker, TopicPartition partition) {
        return ask(a -> a.describeLogDirs(List.of(broker)).allDescriptions().get()).get(broker).values().stream()
            .anyMatch(directory -> directory.replicaInfos().containsKey(partition));
    }

    /** The value of log.dirs of a broker. */
    String logDirectories(int broker) {
        return logDirectories.get(broker).asText();
    }

    Collection<Node> nodes() {
        return ask(a -> a.describeCluster().nodes().get());
    }

    Optional<TopicDescription> describe(String topic) {
        try {
            return Optional.of(ask(a -> a.describeTopics(List.of(topic)).allTopicNames().get()).get(topic));
        } catch (IllegalStateException e) {
            return Optional.empty();
        }
    }

    Map<String, Uuid> topicIds() {
        Map<String, Uuid> ids = new HashMap<>();
        for (TopicListing t : ask(a -> a.listTopics(new ListTopicsOptions().listInternal(true)).listings().get()))
            ids.put(t.name(), t.topicId());
        return ids;
    }

    private Map<String, Short> features() {
        Map<String, Short> levels = new HashMap<>();
        // What a test gets that says nothing: higher than a released broker takes.
        if (config.metadataVersion() != MetadataVersion.latestTesting())
            levels.put(MetadataVersion.FEATURE_NAME, config.metadataVersion().featureLevel());
        config.features().forEach((feature, level) -> levels.put(feature.featureName(), level));
        return levels;
    }

    /** Whether tests may ask for what decides about ACLs. */
    boolean hasAuthorizer() {
        return config.serverProperties().containsKey("authorizer.class.name");
    }

    Collection<AclBinding> acls(AclBindingFilter filter) {
        return ask(a -> a.describeAcls(filter).values().get());
    }

    void createAcls(Collection<AclBinding> wanted) {
        ask(a -> a.createAcls(wanted).all().get());
    }

    Collection<AclBinding> deleteAcls(Collection<AclBindingFilter> unwanted) {
        return ask(a -> a.deleteAcls(unwanted).all().get());
    }

    Collection<TokenInformation> tokens() {
        return ask(a -> a.describeDelegationToken().delegationTokens().get()).stream()
            .map(token -> token.tokenInfo()).collect(Collectors.toList());
    }

    /** By which a user can prove himself. */
    Set<String> scramMechanisms(String user) {
        try {
            return ask(a -> a.describeUserScramCredentials(List.of(user)).description(user).get()).credentialInfos().stream()
                .map(info -> info.mechanism().mechanismName()).collect(Collectors.toSet());
        } catch (IllegalStateException e) {
            return Set.of();
        }
    }

    private <T> T ask(Question<T> question) {
        try {
            return question.put(admin);
        } catch (ExecutionException e) {
            throw new IllegalStateException(e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    static void waitFor(BooleanSupplier condition, String what) {
        for (long start = System.nanoTime(); !condition.getAsBoolean(); ) {
            if (TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start) > DEADLINE_MS)
                throw new AssertionError("not so within " + DEADLINE_MS + " ms: " + what);
            try {
                Thread.sleep(POLL_MS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException(e);
            }
        }
    }
}

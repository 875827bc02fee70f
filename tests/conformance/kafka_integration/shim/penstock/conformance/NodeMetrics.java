package penstock.conformance;

import org.apache.kafka.common.metrics.Measurable;
import org.apache.kafka.common.metrics.Metrics;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/** What a node tells Prometheus, for tests that read the metrics of their broker. */
final class NodeMetrics {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    // Where the harness asks: its own connections say nothing of the test's clients.
    private static final String OWN_LISTENERS = "listener=\"HARNESS";
    private static final String APPLIED = "kafka_server_brokermetadatametrics_last_applied_record_offset";
    private static final String SOCKETS = "kafka_server_socket_server_metrics_";
    // By the name that a test looks for.
    private static final Map<String, String> NAMES = Map.of(
        "expired-connections-killed-count", "kafka_network_socketserver_expiredconnectionskilledcount",
        "failed-authentication-total", SOCKETS + "failed_authentication_total",
        "failed-reauthentication-total", SOCKETS + "failed_reauthentication_total",
        "successful-authentication-total", SOCKETS + "successful_authentication_total");

    private final URI page;

    NodeMetrics(String page) {
        this.page = URI.create(page);
    }

    /** The offset of the last metadata record that the broker has applied. */
    long applied() {
        return (long) sum(APPLIED);
    }

    /**
     * Those metrics of a broker that are known here, of all brokers together, read anew whenever a test looks. What must be 0
     * is so of each; what must not be may be so of one alone, as brokers here prove nothing to each other where clients do.
     */
    static Metrics of(Supplier<List<NodeMetrics>> nodes) {
        Metrics metrics = new Metrics();
        NAMES.forEach((name, ours) -> {
            Measurable value = (config, now) -> nodes.get().stream().mapToDouble(node -> node.sum(ours)).sum();
            metrics.addMetric(metrics.metricName(name, "socket-server-metrics"), value);
        });
        return metrics;
    }

    /** Of all its series; 0 for one that has none yet. */
    private double sum(String name) {
        return text().lines()
            .filter(line -> line.startsWith(name + "{") || line.startsWith(name + " "))
            .filter(line -> !line.contains(OWN_LISTENERS))
            .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
            .sum();
    }

    private String text() {
        try {
            HttpResponse<String> answer = CLIENT.send(HttpRequest.newBuilder(page).build(), HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200)
                throw new IllegalStateException(page + " answers with status " + answer.statusCode());
            return answer.body();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }
}

import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache Kafka's own client, as the package says. */
public final class ObservedClient {
    private static final int INTERVAL_MS = 5;

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        if (arguments[2].equals("write")) {
            write(properties, arguments[1], Stream.of(arguments[3].split(",")).map(Integer::valueOf).toList());
        } else {
            commit(properties, arguments[1], arguments[3]);
        }
        // Requests that nothing answers are not waited for.
        Runtime.getRuntime().halt(0);
    }

    private static void write(Properties properties, String topic, List<Integer> partitions) throws Exception {
        properties.put("acks", "all");
        properties.put("linger.ms", "0");
        var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        while (isWanted()) {
            for (int partition : partitions) {
                var sent = new ProducerRecord<byte[], byte[]>(topic, partition, null, new byte[20]);
                producer.send(sent, (metadata, error) -> {
                    if (error == null) {
                        tell("ack " + partition);
                    }
                });
            }
            Thread.sleep(INTERVAL_MS);
        }
    }

    private static void commit(Properties properties, String topic, String group) throws Exception {
        properties.put("group.id", group);
        properties.put("enable.auto.commit", "false");
        var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(topic));
        while (isWanted()) {
            if (!consumer.poll(Duration.ofMillis(INTERVAL_MS)).isEmpty()) {
                try {
                    consumer.commitSync();
                    tell("commit");
                } catch (KafkaException error) {
                    System.err.println(error);
                }
            }
        }
    }

    private static boolean isWanted() throws Exception {
        return System.in.available() == 0;
    }

    private static synchronized void tell(String event) {
        System.out.println(event);
        System.out.flush();
    }
}

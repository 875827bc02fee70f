import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileInputStream;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;

/**
 * Flights out of New York: counted by carrier and day, joined with the weather of their hour (a stream) and with the
 * names of airlines (a table). An application as anybody would write it; its one argument is a file of properties.
 *
 * <p>Lines on standard output: {@code state NAME}, {@code restored STORE COUNT}.
 */
public final class FlightsApplication {
    private static final ObjectMapper JSON = new ObjectMapper();
    // Longer than all of the input: no record comes too late, whichever partition is ahead.
    private static final Duration GRACE = Duration.ofDays(60);

    private FlightsApplication() {
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            properties.load(file);
        }
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> flights = builder.stream("flights", Consumed.with(Serdes.String(), Serdes.String()));
        countByCarrierAndDay(flights);
        joinWeather(flights, builder.stream("weather", Consumed.with(Serdes.String(), Serdes.String())));
        joinAirlines(flights, builder.table("airlines", Consumed.with(Serdes.String(), Serdes.String())));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setGlobalStateRestoreListener(new TellRestored());
        streams.setStateListener((to, from) -> {
            System.out.println("state " + to);
            if (to == KafkaStreams.State.ERROR) {
                Runtime.getRuntime().halt(1);
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(30))));
        streams.start();
    }

    private static void countByCarrierAndDay(KStream<String, String> flights) {
        flights.groupBy((origin, flight) -> field(flight, "carrier"), Grouped.with(Serdes.String(), Serdes.String()))
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofDays(1), GRACE))
            .count(Materialized.as("counts"))
            .toStream((window, count) -> window.key() + "@" + window.window().start())
            .mapValues((window, count) -> window + "|" + count)
            .to("carrier-days");
    }

    /** A report of the weather holds from its time on for an hour. */
    private static void joinWeather(KStream<String, String> flights, KStream<String, String> weather) {
        JoinWindows hour = JoinWindows.ofTimeDifferenceAndGrace(Duration.ZERO, GRACE).before(Duration.ofMillis(3_599_999));
        flights.join(
            weather,
            (flight, report) -> identity(flight) + "|" + field(report, "time_hour") + "|" + field(report, "temp"),
            hour,
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()).withStoreName("hours")
        ).to("flight-weather");
    }

    private static void joinAirlines(KStream<String, String> flights, KTable<String, String> airlines) {
        flights.selectKey((origin, flight) -> field(flight, "carrier"))
            .join(airlines, (flight, airline) -> identity(flight) + "|" + field(airline, "name"))
            .to("flight-airlines");
    }

    private static String identity(String flight) {
        return field(flight, "number");
    }

    private static String field(String value, String name) {
        try {
            JsonNode found = JSON.readTree(value).get(name);
            return found == null || found.isNull() ? "" : found.asText();
        } catch (com.fasterxml.jackson.core.JsonProcessingException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static final class TellRestored implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long count) {
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long count) {
            System.out.println("restored " + store + " " + count);
        }
    }
}

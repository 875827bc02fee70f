import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The queue of queue_client.py through the Java client: the same options, the same lines on standard input, the same
 * history. Clients are assigned their partitions; with --transactions sends and polls are parts of transactions.
 *
 * <p>An error of a record that was taken is of unknown outcome, whatever it says: the client asks again by itself. A
 * transaction whose commit was not asked for has no effect.
 */
public final class QueueClient {
    private static final int MAX_MICRO_OPERATIONS = 4;
    private static final double CRASH_RATIO = 0.005;
    private static final double SEND_RATIO = 0.6;
    private static final double ABORT_RATIO = 0.1;
    private static final double BEGINNING_RATIO = 0.3;
    private static final int DELIVERY_TIMEOUT_MS = 5_000;
    private static final int REQUEST_TIMEOUT_MS = 3_000;
    private static final int TRANSACTION_TIMEOUT_MS = 10_000;
    // Beyond what the client itself waits for.
    private static final int CALL_TIMEOUT_MS = 15_000;
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Duration CLOSE = Duration.ofSeconds(1);
    private static final long CATCH_UP_NS = 60_000_000_000L;
    private static final int NOT_CAUGHT_UP = 3;

    private final Map<String, String> options;
    private final boolean isTransactional;
    private final List<TopicPartition> keys = new ArrayList<>();
    private final Random random;
    private final int number;
    private final int stride;
    private final long startNs;
    private final FileOutputStream history;
    private volatile String word = "";
    private int process;
    private int count;
    private String open;
    private KafkaProducer<String, String> producer;
    private KafkaConsumer<String, String> consumer;

    private QueueClient(Map<String, String> options, boolean isTransactional) throws IOException {
        this.options = options;
        this.isTransactional = isTransactional;
        number = Integer.parseInt(options.get("process"));
        stride = Integer.parseInt(options.get("stride"));
        startNs = Long.parseLong(options.get("start-ns"));
        random = new Random(Long.parseLong(options.get("seed")) * 1_000 + number);
        history = new FileOutputStream(options.get("history"), true);
        process = number;
        for (int partition = 0; partition < Integer.parseInt(options.get("partitions")); partition++) {
            keys.add(new TopicPartition(options.get("topic"), partition));
        }
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = new HashMap<>();
        boolean isTransactional = false;
        for (int at = 0; at < arguments.length; at++) {
            String name = arguments[at].substring(2);
            if (name.equals("transactions")) {
                isTransactional = true;
            } else {
                options.put(name, arguments[++at]);
            }
        }
        QueueClient client = new QueueClient(options, isTransactional);
        Thread told = new Thread(client::listen);
        told.setDaemon(true);
        told.start();
        boolean isCaughtUp = client.run();
        client.close();
        // What the client has left running need not be waited for.
        Runtime.getRuntime().halt(isCaughtUp ? 0 : NOT_CAUGHT_UP);
    }

    private void listen() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                word = line;
            }
        } catch (IOException error) {
            System.err.println(error);
        }
        if (!word.equals("drain")) {
            word = "abandon";
        }
    }

    private boolean run() throws Exception {
        double pauseMs = Double.parseDouble(options.getOrDefault("pause-ms", "20"));
        long until = startNs + (long) (Double.parseDouble(options.getOrDefault("until", "3600")) * 1e9);
        while (word.isEmpty()) {
            if (System.nanoTime() >= until) {
                word = "drain";
            } else if (consumer == null) {
                open();
            } else {
                step();
                Thread.sleep((long) (-Math.log(1 - random.nextDouble()) * pauseMs));
            }
        }
        close();
        System.out.println("stopped");
        System.out.flush();
        while (word.equals("stop")) {
            Thread.sleep(100);
        }
        return !word.equals("drain") || readToEnds();
    }

    private void open() throws IOException {
        Map<String, Object> common = common();
        Map<String, Object> settings = new HashMap<>(common);
        settings.put("acks", "all");
        settings.put("linger.ms", 0);
        settings.put("delivery.timeout.ms", DELIVERY_TIMEOUT_MS);
        settings.put("max.block.ms", DELIVERY_TIMEOUT_MS);
        settings.put("key.serializer", StringSerializer.class);
        settings.put("value.serializer", StringSerializer.class);
        if (isTransactional) {
            settings.put("transactional.id", options.get("topic") + "-" + number);
            settings.put("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS);
        }
        producer = new KafkaProducer<>(settings);
        consumer = newConsumer("read_committed");
        try {
            if (isTransactional) {
                producer.initTransactions();
            }
        } catch (KafkaException error) {
            close();
            return;
        }
        List<TopicPartition> chosen = new ArrayList<>(keys);
        java.util.Collections.shuffle(chosen, random);
        chosen = chosen.subList(0, (keys.size() + 1) / 2 + random.nextInt(keys.size() / 2 + 1));
        assign(chosen, random.nextDouble() < BEGINNING_RATIO, false);
    }

    private void assign(List<TopicPartition> chosen, boolean fromBeginning, boolean isFinal) throws IOException {
        List<String> names = new ArrayList<>();
        for (TopicPartition key : chosen) {
            names.add(quoted(key.toString()));
        }
        String value = "[" + String.join(",", names) + "]";
        invoke("assign", value, isFinal);
        try {
            consumer.assign(chosen);
            if (fromBeginning) {
                consumer.seekToBeginning(chosen);
            } else {
                consumer.seekToEnd(chosen);
            }
            complete("ok", "assign", value, null, isFinal);
        } catch (KafkaException error) {
            complete("fail", "assign", value, error, isFinal);
            close();
        }
    }

    private void step() throws IOException {
        if (random.nextDouble() < CRASH_RATIO) {
            invoke("crash", "null", false);
            complete("info", "crash", "null", new KafkaException("crashed"), false);
            close();
        } else if (isTransactional) {
            transact();
        } else if (random.nextDouble() < SEND_RATIO) {
            sendSome();
        } else {
            poll(false);
        }
    }

    private void sendSome() throws IOException {
        List<Send> sends = new ArrayList<>();
        for (int more = 1 + random.nextInt(MAX_MICRO_OPERATIONS); more > 0; more--) {
            sends.add(new Send());
        }
        invoke("send", list(sends), false);
        try {
            for (Send send : sends) {
                send.begin();
            }
        } catch (KafkaException error) {
            // Those that were taken before may be stored.
            complete(sends.get(0).future == null ? "fail" : "info", "send", list(sends), error, false);
            close();
            return;
        }
        Exception failure = null;
        for (Send send : sends) {
            try {
                send.await();
            } catch (Exception error) {
                failure = error;
            }
        }
        complete(failure == null ? "ok" : "info", "send", list(sends), failure, false);
        if (failure != null) {
            close();
        }
    }

    private void transact() throws IOException {
        List<Object> operations = new ArrayList<>();
        for (int more = 1 + random.nextInt(MAX_MICRO_OPERATIONS); more > 0; more--) {
            operations.add(random.nextDouble() < SEND_RATIO ? new Send() : "[\"poll\"]");
        }
        String asked = list(operations);
        Map<TopicPartition, Long> firsts = new HashMap<>();
        invoke("txn", asked, false);
        try {
            producer.beginTransaction();
            for (int at = 0; at < operations.size(); at++) {
                if (operations.get(at) instanceof Send) {
                    Send send = (Send) operations.get(at);
                    send.begin();
                    send.await();
                } else {
                    ConsumerRecords<String, String> records = consumer.poll(POLL);
                    for (TopicPartition key : records.partitions()) {
                        firsts.putIfAbsent(key, records.records(key).get(0).offset());
                    }
                    operations.set(at, polled(records));
                }
            }
            if (random.nextDouble() < ABORT_RATIO) {
                throw new KafkaException("aborted by the client");
            }
        } catch (Exception error) {
            giveUp(asked, error, firsts);
            return;
        }
        try {
            producer.commitTransaction();
            complete("ok", "txn", list(operations), null, false);
        } catch (KafkaException error) {
            complete("info", "txn", list(operations), error, false);
            close();
        }
    }

    private void giveUp(String asked, Exception reason, Map<TopicPartition, Long> firsts) throws IOException {
        boolean isBroken = false;
        try {
            producer.abortTransaction();
            firsts.forEach(consumer::seek);
        } catch (KafkaException | IllegalStateException error) {
            isBroken = true;
        }
        complete("fail", "txn", asked, reason, false);
        if (isBroken) {
            close();
        }
    }

    private void poll(boolean isFinal) throws IOException {
        invoke("poll", "[[\"poll\"]]", isFinal);
        try {
            complete("ok", "poll", "[" + polled(consumer.poll(POLL)) + "]", null, isFinal);
        } catch (KafkaException error) {
            complete("fail", "poll", "[[\"poll\"]]", error, isFinal);
        }
    }

    private boolean readToEnds() throws Exception {
        long deadline = System.nanoTime() + CATCH_UP_NS;
        Map<TopicPartition, Long> ends = null;
        while (System.nanoTime() < deadline) {
            try {
                if (ends == null) {
                    try (KafkaConsumer<String, String> all = newConsumer("read_uncommitted")) {
                        ends = all.endOffsets(keys);
                    }
                }
                if (consumer == null) {
                    consumer = newConsumer("read_committed");
                    assign(keys, true, true);
                } else if (isAt(ends)) {
                    return true;
                } else {
                    poll(true);
                }
            } catch (KafkaException error) {
                // Its leader may come yet.
                Thread.sleep(100);
            }
        }
        return false;
    }

    private boolean isAt(Map<TopicPartition, Long> ends) {
        for (Map.Entry<TopicPartition, Long> end : ends.entrySet()) {
            if (consumer.position(end.getKey()) < end.getValue()) {
                return false;
            }
        }
        return true;
    }

    /** The client is gone; the next one is another process. */
    private void close() {
        if (consumer == null) {
            return;
        }
        if (producer != null) {
            producer.close(CLOSE);
            producer = null;
        }
        consumer.close(CLOSE);
        consumer = null;
        process += stride;
    }

    private Map<String, Object> common() {
        Map<String, Object> common = new HashMap<>();
        common.put("bootstrap.servers", options.get("bootstrap"));
        common.put("client.id", options.get("topic") + "-" + number);
        common.put("request.timeout.ms", REQUEST_TIMEOUT_MS);
        common.put("retry.backoff.ms", 20);
        common.put("retry.backoff.max.ms", 200);
        common.put("reconnect.backoff.ms", 10);
        common.put("reconnect.backoff.max.ms", 100);
        common.put("metadata.max.age.ms", 5_000);
        return common;
    }

    private KafkaConsumer<String, String> newConsumer(String isolation) {
        Map<String, Object> settings = common();
        settings.put("enable.auto.commit", false);
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", isolation);
        settings.put("fetch.max.wait.ms", 50);
        settings.put("default.api.timeout.ms", DELIVERY_TIMEOUT_MS);
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        return new KafkaConsumer<>(settings);
    }

    private void invoke(String f, String value, boolean isFinal) throws IOException {
        open = value;
        write("invoke", f, value, null, isFinal);
    }

    private void complete(String type, String f, String value, Exception error, boolean isFinal) throws IOException {
        write(type, f, type.equals("fail") ? open : value, error, isFinal);
    }

    /** Whole lines only, each in one write: the kernel keeps what a killed process has written. */
    private void write(String type, String f, String value, Exception error, boolean isFinal) throws IOException {
        String line = "{\"index\":0,\"type\":" + quoted(type) + ",\"process\":" + process
            + ",\"time\":" + (System.nanoTime() - startNs) + ",\"f\":" + quoted(f) + ",\"value\":" + value
            + (error == null ? "" : ",\"error\":" + quoted(String.valueOf(error)))
            + (isFinal ? ",\"final\":true" : "") + "}\n";
        history.write(line.getBytes(StandardCharsets.UTF_8));
    }

    private static String polled(ConsumerRecords<String, String> records) {
        List<String> byKey = new ArrayList<>();
        for (TopicPartition key : records.partitions()) {
            List<String> pairs = new ArrayList<>();
            for (ConsumerRecord<String, String> record : records.records(key)) {
                pairs.add("[" + record.offset() + "," + record.value() + "]");
            }
            byKey.add(quoted(key.toString()) + ":[" + String.join(",", pairs) + "]");
        }
        return "[\"poll\",{" + String.join(",", byKey) + "}]";
    }

    private static String list(List<?> operations) {
        List<String> told = new ArrayList<>();
        for (Object operation : operations) {
            told.add(operation.toString());
        }
        return "[" + String.join(",", told) + "]";
    }

    private static String quoted(String text) {
        StringBuilder told = new StringBuilder("\"");
        for (char one : text.toCharArray()) {
            if (one == '"' || one == '\\') {
                told.append('\\').append(one);
            } else if (one < ' ') {
                told.append(String.format("\\u%04x", (int) one));
            } else {
                told.append(one);
            }
        }
        return told.append('"').toString();
    }

    /** One record; in a history with its offset, once that is known. */
    private final class Send {
        private final TopicPartition key = keys.get(random.nextInt(keys.size()));
        private final int value = ++count * stride + number;
        private Future<RecordMetadata> future;
        private long offset = -1;

        void begin() {
            future = producer.send(new ProducerRecord<>(key.topic(), key.partition(), null, String.valueOf(value)));
        }

        void await() throws ExecutionException, InterruptedException, TimeoutException {
            offset = future.get(CALL_TIMEOUT_MS, TimeUnit.MILLISECONDS).offset();
        }

        @Override
        public String toString() {
            String told = offset < 0 ? String.valueOf(value) : "[" + offset + "," + value + "]";
            return "[\"send\"," + quoted(key.toString()) + "," + told + "]";
        }
    }
}

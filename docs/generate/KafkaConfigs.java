// Writes the tables of quorum/configs/ from the jars of an Apache Kafka release, one key a line:
//
//   java -cp 'KAFKA_LIBS/*' docs/generate/KafkaConfigs.java 4.3.1 quorum/configs/
//
// kafka-VERSION.json holds what every start needs; kafka-VERSION-documentation.json holds the texts, which only DescribeConfigs asks for.
// Nothing of it is written by hand: run it on the jars of the next release and read the difference.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

public class KafkaConfigs {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        String version = arguments[0];
        Path folder = Path.of(arguments[1]);
        Map<String, ConfigDef> tables = new LinkedHashMap<>();
        // The definitions for dynamic broker configs add the quota keys that no server.properties may hold.
        ConfigDef quotas = new ConfigDef();
        DynamicConfig.Broker.configKeys().forEach((name, key) -> {
            if (!AbstractKafkaConfig.CONFIG_DEF.names().contains(name)) quotas.define(key);
        });
        tables.put("broker", AbstractKafkaConfig.CONFIG_DEF);
        tables.put("broker-dynamic", quotas);
        tables.put("topic", LogConfig.configDefCopy());
        tables.put("group", GroupConfig.CONFIG_DEF);
        tables.put("client-metrics", ClientMetricsConfigs.configDef());
        Map<String, List<String>> definitions = new LinkedHashMap<>();
        Map<String, List<String>> documentation = new LinkedHashMap<>();
        for (Map.Entry<String, ConfigDef> table : tables.entrySet()) {
            List<String> lines = new ArrayList<>();
            List<String> texts = new ArrayList<>();
            for (ConfigDef.ConfigKey key : new TreeMap<>(table.getValue().configKeys()).values()) {
                lines.add(JSON.writeValueAsString(key.name) + ": " + JSON.writeValueAsString(definition(table.getKey(), key)));
                texts.add(JSON.writeValueAsString(key.name) + ": " + JSON.writeValueAsString(key.documentation));
            }
            definitions.put(table.getKey(), lines);
            documentation.put(table.getKey(), texts);
        }
        write(folder.resolve("kafka-" + version + ".json"), definitions);
        write(folder.resolve("kafka-" + version + "-documentation.json"), documentation);
    }

    static Map<String, Object> definition(String table, ConfigDef.ConfigKey key) throws Exception {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("type", key.type.name());
        if (key.hasDefault()) {
            // A password's own string form hides it; the value itself is wanted (all of them are null).
            result.put("default", ConfigDef.convertToString(key.defaultValue, key.type));
        }
        if (key.validator != null) result.put("validator", validator(key.validator));
        result.put("importance", key.importance.name());
        if (key.internalConfig) result.put("internal", true);
        if (table.startsWith("broker")) {
            String mode = DynamicBrokerConfig.dynamicConfigUpdateModes().get(key.name);
            if (mode != null) result.put("update", mode);
            List<String> synonyms = DynamicBrokerConfig.brokerConfigSynonyms(key.name, false);
            if (!synonyms.equals(List.of(key.name))) result.put("synonyms", synonyms);
        } else if (table.equals("topic")) {
            List<List<Object>> synonyms = new ArrayList<>();
            for (ConfigSynonym synonym : ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.getOrDefault(key.name, List.of())) {
                // The factor between the two keys' units: hours and minutes become milliseconds.
                synonyms.add(List.of(synonym.name(), Long.parseLong(synonym.converter().apply("1"))));
            }
            if (!synonyms.isEmpty()) result.put("synonyms", synonyms);
        } else if (table.equals("group")) {
            if (GroupConfig.brokerSynonym(key.name).isPresent()) {
                result.put("synonyms", List.of(List.of(GroupConfig.brokerSynonym(key.name).get(), 1)));
            }
        }
        return result;
    }

    static Map<String, Object> validator(ConfigDef.Validator validator) throws Exception {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("kind", validator.getClass().getSimpleName());
        result.put("text", validator.toString());
        if (validator instanceof ConfigDef.Range) {
            result.put("min", read(validator, "min"));
            result.put("max", read(validator, "max"));
        } else if (validator instanceof ConfigDef.ValidString) {
            result.put("values", read(validator, "validStrings"));
        } else if (validator instanceof ConfigDef.CaseInsensitiveValidString) {
            result.put("values", read(validator, "validStrings"));
        } else if (validator instanceof ConfigDef.ValidList) {
            result.put("values", read(read(validator, "validString"), "validStrings"));
            result.put("empty", read(validator, "isEmptyAllowed"));
            result.put("null", read(validator, "isNullAllowed"));
        }
        return result;
    }

    static Object read(Object object, String field) throws Exception {
        Field reflected = object.getClass().getDeclaredField(field);
        reflected.setAccessible(true);
        return reflected.get(object);
    }

    static void write(Path path, Map<String, List<String>> tables) throws IOException {
        StringBuilder text = new StringBuilder("{\n");
        String between = "";
        for (Map.Entry<String, List<String>> table : tables.entrySet()) {
            text.append(between).append("\"").append(table.getKey()).append("\": {\n");
            text.append(String.join(",\n", table.getValue())).append("\n}");
            between = ",\n";
        }
        Files.writeString(path, text.append("\n}\n"));
    }
}

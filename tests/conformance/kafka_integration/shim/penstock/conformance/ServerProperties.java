package penstock.conformance;

import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.types.Password;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;

/**
 * What a test configures its broker with, in a form that needs nothing of its process: stores of Java as PEM, and the JAAS
 * configuration of the process as properties of the listeners.
 */
final class ServerProperties {
    private static final String JAAS_CONTEXT = "KafkaServer";
    private static final String UNSIGNED_TOKENS =
        "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler";
    private static final Base64.Encoder BASE64 = Base64.getMimeEncoder(64, new byte[] {'\n'});

    private ServerProperties() { }

    /** By name, without those that say where the broker listens, who controls it and where its data are. */
    static Map<String, String> of(KafkaConfig config, List<String> saslListeners) {
        Map<String, String> properties = new TreeMap<>();
        config.originals().forEach((key, value) -> {
            if (value != null && !isOurs(key))
                properties.put(key, text(value));
        });
        withoutStores(properties);
        AppConfigurationEntry[] modules = saslListeners.isEmpty() ? null : Configuration.getConfiguration().getAppConfigurationEntry(JAAS_CONTEXT);
        if (modules != null)
            for (AppConfigurationEntry module : modules)
                for (String mechanism : properties.getOrDefault("sasl.enabled.mechanisms", "").split(","))
                    if (serves(module, mechanism))
                        for (String listener : saslListeners)
                            serve(properties, "listener.name." + listener.toLowerCase() + "." + mechanism.toLowerCase() + ".", module);
        return properties;
    }

    private static void serve(Map<String, String> properties, String prefix, AppConfigurationEntry module) {
        properties.putIfAbsent(prefix + "sasl.jaas.config", text(module));
        // Apache Kafka takes unsigned tokens where nothing is said, Penstock where it is told to.
        if (prefix.endsWith(".oauthbearer."))
            properties.putIfAbsent(prefix + "sasl.server.callback.handler.class", UNSIGNED_TOKENS);
    }

    private static boolean isOurs(String key) {
        return key.startsWith("controller.") && !key.startsWith("controller.quota") || key.startsWith("listener.security.")
            || key.startsWith("inter.broker.") || List.of("listeners", "advertised.listeners", "process.roles", "node.id", "broker.id",
            "log.dir", "log.dirs", "metadata.log.dir", "sasl.mechanism.inter.broker.protocol",
            "sasl.mechanism.controller.protocol", "security.inter.broker.protocol").contains(key);
    }

    private static boolean serves(AppConfigurationEntry module, String mechanism) {
        String name = module.getLoginModuleName();
        return name.endsWith(".PlainLoginModule") && mechanism.equals("PLAIN")
            || name.endsWith(".ScramLoginModule") && mechanism.startsWith("SCRAM-")
            || name.endsWith(".OAuthBearerLoginModule") && mechanism.equals("OAUTHBEARER");
    }

    private static String text(AppConfigurationEntry module) {
        return module.getLoginModuleName() + " required" + module.getOptions().entrySet().stream()
            .map(option -> " " + option.getKey() + "=\"" + option.getValue() + "\"").collect(Collectors.joining()) + ";";
    }

    private static String text(Object value) {
        if (value instanceof Password)
            return ((Password) value).value();
        if (value instanceof List)
            return ((List<?>) value).stream().map(String::valueOf).collect(Collectors.joining(","));
        if (value instanceof Class)
            return ((Class<?>) value).getName();
        return String.valueOf(value);
    }

    private static void withoutStores(Map<String, String> properties) {
        try {
            if (properties.containsKey("ssl.keystore.location")) {
                char[] password = properties.get("ssl.keystore.password").toCharArray();
                KeyStore store = store(properties, "ssl.keystore", password);
                String keyPassword = properties.remove("ssl.key.password");
                String alias = Collections.list(store.aliases()).get(0);
                Key key = store.getKey(alias, keyPassword == null ? password : keyPassword.toCharArray());
                properties.put("ssl.keystore.key", pem("PRIVATE KEY", key.getEncoded()));
                StringBuilder chain = new StringBuilder();
                for (Certificate one : store.getCertificateChain(alias))
                    chain.append(pem("CERTIFICATE", one.getEncoded()));
                properties.put("ssl.keystore.certificate.chain", chain.toString());
            }
            if (properties.containsKey("ssl.truststore.location")) {
                String given = properties.get("ssl.truststore.password");
                KeyStore store = store(properties, "ssl.truststore", given == null ? null : given.toCharArray());
                StringBuilder trusted = new StringBuilder();
                for (String alias : Collections.list(store.aliases()))
                    trusted.append(pem("CERTIFICATE", store.getCertificate(alias).getEncoded()));
                properties.put("ssl.truststore.certificates", trusted.toString());
            }
        } catch (GeneralSecurityException | IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static KeyStore store(Map<String, String> properties, String which, char[] password) throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance(properties.getOrDefault(which + ".type", "JKS"));
        try (InputStream in = new FileInputStream(properties.remove(which + ".location"))) {
            store.load(in, password);
        }
        properties.remove(which + ".password");
        properties.put(which + ".type", "PEM");
        return store;
    }

    private static String pem(String what, byte[] encoded) {
        return "-----BEGIN " + what + "-----\n" + BASE64.encodeToString(encoded) + "\n-----END " + what + "-----\n";
    }
}

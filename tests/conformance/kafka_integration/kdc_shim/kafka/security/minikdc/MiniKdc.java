package kafka.security.minikdc;

import java.io.File;
import java.util.List;
import java.util.Properties;

/**
 * Stands before the class of this name on the class path, which needs a directory server as soon as it is loaded: no test that
 * is run here uses Kerberos, but all that use SASL have one of these.
 */
public class MiniKdc {
    public MiniKdc(Properties config, File workDir) {
        throw new UnsupportedOperationException("there is no Kerberos here");
    }

    public static Properties createConfig() {
        return new Properties();
    }

    public void start() { }

    public void stop() { }

    public void createPrincipal(File keytabFile, List<String> principals) { }
}

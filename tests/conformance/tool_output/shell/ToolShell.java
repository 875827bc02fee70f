import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.utils.Exit;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Runs the main methods of Apache Kafka's tools one after another, so that Java starts once: a JSON object a line to it
 * (`main`, `arguments`, `input`), a line from it (`exit`, `out`, `err`). It ends when its input does.
 */
public final class ToolShell {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Unwinds a tool that has called Exit. Scala and Java tools catch Throwable: what they print after it is dropped. */
    private static final class Exited extends Error {
        private static final long serialVersionUID = 1L;

        Exited() {
            super("the tool has ended", null, false, false);
        }
    }

    /** Where one of the standard streams goes: scala.Console keeps the stream that it finds first. */
    private static final class Switch extends OutputStream {
        private ByteArrayOutputStream target;

        synchronized void to(ByteArrayOutputStream next) {
            target = next;
        }

        @Override
        public synchronized void write(int value) {
            if (target != null)
                target.write(value);
        }

        @Override
        public synchronized void write(byte[] bytes, int offset, int length) {
            if (target != null)
                target.write(bytes, offset, length);
        }
    }

    private static final Switch OUT = new Switch();
    private static final Switch ERR = new Switch();
    private static final String PRODUCER_HOOK = "producer-shutdown-hook";
    private static final List<Runnable> HOOKS = new CopyOnWriteArrayList<>();
    private static volatile Integer status;

    private ToolShell() {
    }

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = System.out;
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        Exit.setShutdownHookAdder((name, hook) -> {
            if (name.equals(PRODUCER_HOOK)) {
                HOOKS.add(hook);
            } else {
                Runtime.getRuntime().addShutdownHook(new Thread(hook));
            }
        });
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(run(JSON.readTree(line))));
            answers.flush();
        }
        System.exit(0);
    }

    private static void exit(int code) {
        if (status == null) {
            status = code;
            OUT.to(null);
            ERR.to(null);
        }
        throw new Exited();
    }

    private static Map<String, Object> run(JsonNode request) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        status = null;
        OUT.to(out);
        ERR.to(err);
        System.setIn(new ByteArrayInputStream(request.get("input").asText().getBytes(StandardCharsets.UTF_8)));
        String[] arguments = JSON.convertValue(request.get("arguments"), String[].class);
        int code = 0;
        try {
            Class.forName(request.get("main").asText()).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (status == null) {
                // As Java itself says it of a main method, without the frames.
                err.writeBytes(("Exception in thread \"main\" " + thrown.getCause() + "\n").getBytes(StandardCharsets.UTF_8));
                code = 1;
            }
        }
        // The console producer leaves to its end the records that it still has: the next tool would overtake them.
        HOOKS.forEach(Runnable::run);
        HOOKS.clear();
        System.out.flush();
        System.err.flush();
        OUT.to(null);
        ERR.to(null);
        return Map.of("exit", status == null ? code : status, "out", text(out), "err", text(err));
    }

    private static String text(ByteArrayOutputStream bytes) {
        return bytes.toString(StandardCharsets.UTF_8);
    }
}

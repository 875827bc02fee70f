package penstock.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.util.Map;

/**
 * The program that starts the clusters, as a child of this one: a JSON object a line to it, an answer a line from it.
 * Its command line is the system property `penstock.hook`, separated by tabs; hook.py says what it understands. It ends, and
 * its brokers with it, when its input does, so at the latest with this process.
 */
final class Hook {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static Hook instance;

    private final Writer requests;
    private final BufferedReader answers;

    private Hook() throws IOException {
        Process process = new ProcessBuilder(System.getProperty("penstock.hook").split("\t"))
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
        requests = process.outputWriter();
        answers = process.inputReader();
    }

    /** What the hook answers. Throws IllegalStateException with its sentence when it could not do it. */
    static synchronized JsonNode ask(String command, Object argument) {
        try {
            if (instance == null)
                instance = new Hook();
            instance.requests.write(JSON.writeValueAsString(Map.of(command, argument)) + "\n");
            instance.requests.flush();
            String line = instance.answers.readLine();
            if (line == null)
                throw new IllegalStateException("the hook ended at: " + command);
            JsonNode answer = JSON.readTree(line);
            if (answer.has("error"))
                throw new IllegalStateException(answer.get("error").asText());
            return answer;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}

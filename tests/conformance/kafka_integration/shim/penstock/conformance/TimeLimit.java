package penstock.conformance;

import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;

import java.lang.reflect.Method;
import java.time.Duration;

/** Ends a test after `penstock.limit` seconds, whatever its own annotation says: JUnit's configuration yields to those. */
public final class TimeLimit implements InvocationInterceptor {
    private static final Duration LIMIT = Duration.ofSeconds(Long.getLong("penstock.limit"));

    @Override
    public void interceptTestTemplateMethod(Invocation<Void> test, ReflectiveInvocationContext<Method> method, ExtensionContext context) {
        Assertions.assertTimeoutPreemptively(LIMIT, test::proceed);
    }
}

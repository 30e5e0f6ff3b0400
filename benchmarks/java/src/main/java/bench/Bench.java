package bench;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Session;
import java.util.Map;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Runs one scenario and prints one JSON line: what a worker process of the Python side prints too. */
public final class Bench {
    private Bench() {}

    public static void main(String[] args) throws Exception {
        Job job = Job.parse(args);
        Map<String, String> env = System.getenv();
        JmsConnectionFactory factory = new JmsConnectionFactory(
                env.get("PYJMSACK_BENCH_USERNAME"), env.get("PYJMSACK_BENCH_PASSWORD"), job.url());
        long nanos;
        try (Connection connection = factory.createConnection()) {
            connection.start();
            nanos = run(connection, job);
            System.out.printf(
                    "{\"count\": %d, \"nanoseconds\": %d, \"client\": \"Qpid JMS %s\"}%n",
                    job.count(), nanos, connection.getMetaData().getProviderVersion());
        }
    }

    private static long run(Connection connection, Job job) throws JMSException, InterruptedException {
        return switch (job.scenario()) {
            case "send-async" -> Sending.pipelined(connection.createSession(Session.AUTO_ACKNOWLEDGE), job);
            case "send" -> Sending.oneByOne(connection.createSession(Session.AUTO_ACKNOWLEDGE), job);
            case "transacted" -> Sending.transacted(connection.createSession(Session.SESSION_TRANSACTED), job);
            case "receive" -> Receiving.receive(connection.createSession(Session.AUTO_ACKNOWLEDGE), job);
            case "listener" -> Receiving.listener(connection.createSession(Receiving.INDIVIDUAL_ACKNOWLEDGE), job);
            default -> throw new IllegalArgumentException("unknown scenario " + job.scenario());
        };
    }
}

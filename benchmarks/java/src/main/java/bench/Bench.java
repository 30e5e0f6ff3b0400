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
        try (Connection connection = factory.createConnection();
                Connection answering = factory.createConnection()) {
            connection.start();
            Requesting.Result result;
            if (job.scenario().startsWith("request")) {
                answering.start();
                int threads = job.scenario().equals("request") ? 1 : Requesting.IN_FLIGHT;
                result = Requesting.run(connection, answering, job, threads);
            } else {
                result = new Requesting.Result(run(connection, job), new long[] {0});
            }
            System.out.printf(
                    "{\"count\": %d, \"nanoseconds\": %d, \"client\": \"Qpid JMS %s\", \"p50\": %d, \"p99\": %d}%n",
                    job.count(), result.nanos(), connection.getMetaData().getProviderVersion(),
                    percentile(result.latencies(), 0.5), percentile(result.latencies(), 0.99));
        }
    }

    private static long percentile(long[] ordered, double share) {
        return ordered[(int) (share * (ordered.length - 1))];
    }

    private static long run(Connection connection, Job job) throws JMSException, InterruptedException {
        return switch (job.scenario()) {
            case "send-async" -> Sending.pipelined(connection.createSession(Session.AUTO_ACKNOWLEDGE), job);
            case "send" -> Sending.oneByOne(connection.createSession(Session.AUTO_ACKNOWLEDGE), job);
            case "send-nonpersistent" -> Sending.nonPersistent(connection.createSession(Session.AUTO_ACKNOWLEDGE), job);
            case "transacted" -> Sending.transacted(connection.createSession(Session.SESSION_TRANSACTED), job);
            case "receive" -> Receiving.receive(connection.createSession(Session.AUTO_ACKNOWLEDGE), job);
            case "listener" -> Receiving.listener(connection.createSession(Receiving.INDIVIDUAL_ACKNOWLEDGE), job);
            default -> throw new IllegalArgumentException("unknown scenario " + job.scenario());
        };
    }
}

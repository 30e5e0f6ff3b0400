package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.JMSException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * A JMS client that is told by JSON lines on standard input what to do, and answers each with one on standard output.
 *
 * <p>Arguments: {@code qpid|openwire} and the client id. Each command names the URL it is for; connections are kept.
 */
public final class Agent {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Agent() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // what a library prints must not look like an answer
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = in.readLine()) != null) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                JsonNode command = JSON.readTree(line);
                try (Connection connection = connect(arguments[0], command)) {
                    answer.set("result", new Commands(connection).run(command));
                }
            } catch (Exception error) {
                answer.put("error", error.toString());
            }
            out.println(JSON.writeValueAsString(answer));
        }
    }

    private static Connection connect(String client, JsonNode command) throws JMSException {
        String url = command.get("url").asText();
        ConnectionFactory factory = "qpid".equals(client) ? new JmsConnectionFactory(url) : openWire(url);
        for (int tries = 50; ; tries--) {
            Connection connection = factory.createConnection();
            try {
                if (command.hasNonNull("clientId")) {
                    connection.setClientID(command.get("clientId").asText());
                }
                connection.start();
                return connection;
            } catch (InvalidClientIDException taken) { // brokers free an id a moment after its connection closed
                connection.close();
                if (tries == 0) {
                    throw taken;
                }
            }
        }
    }

    private static ActiveMQConnectionFactory openWire(String url) {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(url);
        factory.setTrustAllPackages(true); // the test's own objects
        factory.setWatchTopicAdvisories(false);
        return factory;
    }
}

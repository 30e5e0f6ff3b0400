package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.Collections;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What the agent can do on one connection. */
final class Commands {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Connection connection;
    private final Session session;
    private final Messages messages;

    Commands(Connection connection) throws JMSException {
        this.connection = connection;
        this.session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        this.messages = new Messages(session);
    }

    JsonNode run(JsonNode command) throws JMSException {
        return switch (command.get("do").asText()) {
            case "send" -> send(command);
            case "receive" -> receive(command);
            case "browse" -> browse(command);
            case "subscribe" -> subscribe(command);
            case "unsubscribe" -> unsubscribe(command);
            case "reply" -> reply(command);
            case "request" -> request(command);
            case "groups" -> groups(command);
            case "forward" -> forward(command);
            default -> throw new IllegalArgumentException("unknown command " + command);
        };
    }

    private Destination destination(JsonNode command) throws JMSException {
        String name = command.get("destination").asText();
        return command.path("topic").asBoolean() ? session.createTopic(name) : session.createQueue(name);
    }

    private JsonNode send(JsonNode command) throws JMSException {
        ArrayNode ids = JSON.createArrayNode();
        try (MessageProducer producer = session.createProducer(destination(command))) {
            for (JsonNode document : command.get("messages")) {
                Message message = messages.create(document);
                producer.send(
                        message,
                        document.path("deliveryMode").asInt(2),
                        document.path("priority").asInt(4),
                        document.path("timeToLive").asLong(0));
                ids.add(message.getJMSMessageID());
            }
        }
        return ids;
    }

    private JsonNode receive(JsonNode command) throws JMSException {
        String selector = command.path("selector").asText(null);
        ArrayNode found = JSON.createArrayNode();
        try (MessageConsumer consumer = consumer(command, selector)) {
            for (int left = command.path("count").asInt(1); left > 0; left--) {
                Message message = consumer.receive(command.path("timeout").asLong(10000));
                if (message == null) {
                    break;
                }
                found.add(messages.describe(message));
            }
        }
        return found;
    }

    private MessageConsumer consumer(JsonNode command, String selector) throws JMSException {
        if (command.hasNonNull("subscription")) {
            String name = command.get("subscription").asText();
            return session.createDurableSubscriber((Topic) destination(command), name, selector, false);
        }
        return session.createConsumer(destination(command), selector);
    }

    private JsonNode browse(JsonNode command) throws JMSException {
        ArrayNode found = JSON.createArrayNode();
        try (QueueBrowser browser =
                session.createBrowser((Queue) destination(command), command.path("selector").asText(null))) {
            for (Object message : Collections.list(browser.getEnumeration())) {
                found.add(messages.describe((Message) message));
            }
        }
        return found;
    }

    private JsonNode subscribe(JsonNode command) throws JMSException {
        consumer(command, command.path("selector").asText(null)).close();
        return JSON.nullNode();
    }

    private JsonNode unsubscribe(JsonNode command) throws JMSException {
        session.unsubscribe(command.get("subscription").asText());
        return JSON.nullNode();
    }

    /** Answers one request: the same body, correlated by the request's id. */
    private JsonNode reply(JsonNode command) throws JMSException {
        try (MessageConsumer consumer = session.createConsumer(destination(command));
                MessageProducer producer = session.createProducer(null)) {
            Message request = consumer.receive(10000);
            Message answer = messages.create(command.get("answer"));
            answer.setJMSCorrelationID(request.getJMSMessageID());
            producer.send(request.getJMSReplyTo(), answer);
            return messages.describe(request);
        }
    }

    /** Sends a request with a temporary reply queue and waits for the answer. */
    private JsonNode request(JsonNode command) throws JMSException {
        TemporaryQueue inbox = session.createTemporaryQueue();
        try (MessageProducer producer = session.createProducer(destination(command));
                MessageConsumer consumer = session.createConsumer(inbox)) {
            Message request = messages.create(command.get("message"));
            request.setJMSReplyTo(inbox);
            producer.send(request);
            Message answer = consumer.receive(20000);
            if (answer == null) {
                throw new JMSException("no answer came");
            }
            ObjectNode description = messages.describe(answer);
            description.put("answers", request.getJMSMessageID());
            return description;
        }
    }

    /** Sends a message on, in a listener, which is where a tracing agent knows what it belongs to. */
    private JsonNode forward(JsonNode command) throws JMSException {
        BlockingQueue<String> answers = new LinkedBlockingQueue<>();
        try (Session listening = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                MessageProducer producer = listening.createProducer(listening.createQueue(command.get("to").asText()));
                MessageConsumer consumer = listening.createConsumer(destination(command))) {
            consumer.setMessageListener(message -> answers.offer(sentOn(listening, producer, message)));
            return JSON.valueToTree(answers.poll(20, TimeUnit.SECONDS));
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String sentOn(Session session, MessageProducer producer, Message message) {
        try {
            String body = ((TextMessage) message).getText();
            producer.send(session.createTextMessage(body));
            return body;
        } catch (JMSException error) {
            return error.toString();
        }
    }

    /** Receives with two consumers and tells which of them got which group. */
    private JsonNode groups(JsonNode command) throws JMSException {
        ArrayNode found = JSON.createArrayNode();
        try (MessageConsumer one = session.createConsumer(destination(command));
                MessageConsumer two = session.createConsumer(destination(command))) {
            found.add("ready");
            for (int left = command.get("count").asInt(); left > 0; ) {
                left -= take(one, 1, found) + take(two, 2, found);
            }
        }
        return found;
    }

    private int take(MessageConsumer consumer, int number, ArrayNode found) throws JMSException {
        Message message = consumer.receive(50);
        if (message == null) {
            return 0;
        }
        found.add(JSON.createObjectNode()
                .put("consumer", number)
                .put("group", message.getStringProperty("JMSXGroupID"))
                .put("sequence", message.getIntProperty("JMSXGroupSeq")));
        return 1;
    }
}

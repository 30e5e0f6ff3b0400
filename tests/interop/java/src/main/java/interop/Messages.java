package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import jakarta.jms.BytesMessage;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageEOFException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Messages from and to JSON. A value is {@code [java type, text]}, so that no type gets lost. */
final class Messages {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Session session;

    Messages(Session session) {
        this.session = session;
    }

    Message create(JsonNode document) throws JMSException {
        Message message = body(document.path("type").asText("text"), document.path("body"));
        for (Map.Entry<String, JsonNode> property : document.path("properties").properties()) {
            message.setObjectProperty(property.getKey(), value(property.getValue()));
        }
        if (document.hasNonNull("correlationId")) {
            message.setJMSCorrelationID(document.get("correlationId").asText());
        }
        if (document.hasNonNull("jmsType")) {
            message.setJMSType(document.get("jmsType").asText());
        }
        if (document.hasNonNull("replyTo")) {
            String name = document.get("replyTo").asText();
            boolean topic = document.path("replyToTopic").asBoolean();
            message.setJMSReplyTo(topic ? session.createTopic(name) : session.createQueue(name));
        }
        return message;
    }

    private Message body(String type, JsonNode body) throws JMSException {
        switch (type) {
            case "text":
                return body.isNull() ? session.createTextMessage() : session.createTextMessage(body.asText());
            case "bytes":
                BytesMessage bytes = session.createBytesMessage();
                bytes.writeBytes(Base64.getDecoder().decode(body.asText()));
                return bytes;
            case "map":
                MapMessage map = session.createMapMessage();
                for (Map.Entry<String, JsonNode> entry : body.properties()) {
                    map.setObject(entry.getKey(), value(entry.getValue()));
                }
                return map;
            case "stream":
                StreamMessage stream = session.createStreamMessage();
                for (JsonNode element : body) {
                    stream.writeObject(value(element));
                }
                return stream;
            case "object":
                return session.createObjectMessage(new HashMap<>(Map.of("list", List.of("a", 1L), "text", body.asText())));
            case "message":
                return session.createMessage();
            default:
                throw new IllegalArgumentException("unknown type " + type);
        }
    }

    private static Object value(JsonNode typed) {
        String text = typed.get(1).asText();
        return switch (typed.get(0).asText()) {
            case "null" -> null;
            case "boolean" -> Boolean.valueOf(text);
            case "byte" -> Byte.valueOf(text);
            case "short" -> Short.valueOf(text);
            case "int" -> Integer.valueOf(text);
            case "long" -> Long.valueOf(text);
            case "float" -> Float.valueOf(text);
            case "double" -> Double.valueOf(text);
            case "char" -> text.charAt(0);
            case "string" -> text;
            case "bytes" -> Base64.getDecoder().decode(text);
            default -> throw new IllegalArgumentException("unknown type " + typed);
        };
    }

    private static ArrayNode typed(Object value) {
        ArrayNode typed = JSON.createArrayNode();
        if (value == null) {
            return typed.add("null").add("");
        }
        if (value instanceof byte[] bytes) {
            return typed.add("bytes").add(Base64.getEncoder().encodeToString(bytes));
        }
        String name = value.getClass().getSimpleName();
        String kind = value instanceof Integer ? "int" : value instanceof Character ? "char" : name.toLowerCase();
        return typed.add(kind).add(value.toString());
    }

    ObjectNode describe(Message message) throws JMSException {
        ObjectNode document = JSON.createObjectNode();
        describeBody(message, document);
        ObjectNode properties = document.putObject("properties");
        for (Object name : Collections.list(message.getPropertyNames())) {
            properties.set((String) name, typed(message.getObjectProperty((String) name)));
        }
        document.put("messageId", message.getJMSMessageID());
        document.put("correlationId", message.getJMSCorrelationID());
        document.put("jmsType", message.getJMSType());
        document.put("timestamp", message.getJMSTimestamp());
        document.put("expiration", message.getJMSExpiration());
        document.put("priority", message.getJMSPriority());
        document.put("deliveryMode", message.getJMSDeliveryMode());
        document.put("redelivered", message.getJMSRedelivered());
        document.put("destination", name(message.getJMSDestination()));
        document.put("replyTo", name(message.getJMSReplyTo()));
        document.put("groupSequence", message.propertyExists("JMSXGroupSeq") ? message.getIntProperty("JMSXGroupSeq") : 0);
        return document;
    }

    private void describeBody(Message message, ObjectNode document) throws JMSException {
        if (message instanceof TextMessage text) {
            document.put("type", "text").put("body", text.getText());
        } else if (message instanceof BytesMessage bytes) {
            byte[] content = new byte[(int) bytes.getBodyLength()];
            bytes.readBytes(content);
            document.put("type", "bytes").put("body", Base64.getEncoder().encodeToString(content));
        } else if (message instanceof MapMessage map) {
            ObjectNode body = document.put("type", "map").putObject("body");
            for (Object name : Collections.list(map.getMapNames())) {
                body.set((String) name, typed(map.getObject((String) name)));
            }
        } else if (message instanceof StreamMessage stream) {
            describeStream(stream, document.put("type", "stream").putArray("body"));
        } else if (message instanceof ObjectMessage object) {
            document.put("type", "object").put("body", String.valueOf(object.getObject()));
        } else {
            document.put("type", "message").putNull("body");
        }
    }

    private static void describeStream(StreamMessage stream, ArrayNode body) throws JMSException {
        try {
            while (true) {
                body.add(typed(stream.readObject()));
            }
        } catch (MessageEOFException end) {
            // that is how a stream says that it is over
        }
    }

    private static String name(Destination destination) throws JMSException {
        if (destination == null) {
            return null;
        }
        return destination instanceof Queue queue
                ? "queue:" + queue.getQueueName()
                : "topic:" + ((Topic) destination).getTopicName();
    }
}

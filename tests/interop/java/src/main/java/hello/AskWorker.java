package hello;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Message;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import java.util.UUID;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Sends a task to a Celery worker and prints the result. Arguments: URL, queue, name of the task, text of the task. */
public final class AskWorker {
    public static void main(String[] arguments) throws Exception {
        try (JMSContext context = new JmsConnectionFactory(arguments[0]).createContext()) {
            TemporaryQueue results = context.createTemporaryQueue();
            JMSConsumer consumer = context.createConsumer(results);
            String id = UUID.randomUUID().toString();
            TextMessage task = context.createTextMessage(arguments[3]);
            task.setStringProperty("task", arguments[2]);
            task.setStringProperty("id", id);
            task.setJMSCorrelationID(id);
            task.setJMSReplyTo(results);
            context.createProducer().send(context.createQueue(arguments[1]), task);
            Message result = consumer.receive(60_000);
            if (result == null || !id.equals(result.getJMSCorrelationID())) {
                throw new IllegalStateException("no result came, or that of another task: " + result);
            }
            System.out.println(result.getBody(String.class));
        }
    }
}

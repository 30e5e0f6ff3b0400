package bench;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageListener;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.concurrent.CountDownLatch;

/**
 * Timed from the first message to the answer to the consumer's close, which the broker gives after it has taken every
 * acknowledgement.
 */
final class Receiving {
    static final int INDIVIDUAL_ACKNOWLEDGE = 101;
    private static final long PATIENCE_MILLISECONDS = 30_000;

    private Receiving() {}

    static long receive(Session session, Job job) throws JMSException {
        MessageConsumer consumer = session.createConsumer(session.createQueue(job.queue()));
        for (int i = 0; i < job.warmup(); i++) {
            check(consumer.receive(PATIENCE_MILLISECONDS), job);
        }
        long start = 0;
        for (int i = 0; i < job.count(); i++) {
            Message message = consumer.receive(PATIENCE_MILLISECONDS);
            if (i == 0) {
                start = System.nanoTime();
            }
            check(message, job);
        }
        consumer.close();
        return System.nanoTime() - start;
    }

    static long listener(Session session, Job job) throws JMSException, InterruptedException {
        MessageConsumer consumer = session.createConsumer(session.createQueue(job.queue()));
        Acknowledging listener = new Acknowledging(job);
        consumer.setMessageListener(listener);
        listener.done.await();
        consumer.close();
        long end = System.nanoTime();
        if (listener.failure != null) {
            throw listener.failure;
        }
        return end - listener.start;
    }

    static void check(Message message, Job job) throws JMSException {
        if (message == null) {
            throw new IllegalStateException("the queue ran dry");
        }
        if (((TextMessage) message).getText().length() != job.size()) {
            throw new IllegalStateException("the text has another length than was sent");
        }
    }

    private static final class Acknowledging implements MessageListener {
        private final CountDownLatch done = new CountDownLatch(1);
        private final Job job;
        private int seen;
        private volatile long start;
        private volatile JMSException failure;

        Acknowledging(Job job) {
            this.job = job;
        }

        @Override
        public void onMessage(Message message) {
            if (seen == job.warmup()) {
                start = System.nanoTime();
            }
            try {
                check(message, job);
                message.acknowledge();
            } catch (JMSException error) {
                failure = error;
                done.countDown();
            }
            if (++seen == job.warmup() + job.count()) {
                done.countDown();
            }
        }
    }
}

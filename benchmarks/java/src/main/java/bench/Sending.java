package bench;

import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.concurrent.CountDownLatch;

/** Timed from the first send to the last confirmation. */
final class Sending {
    private static final int TRANSACTION = 5;

    private Sending() {}

    static long pipelined(Session session, Job job) throws JMSException, InterruptedException {
        MessageProducer producer = producer(session, job);
        sendAll(session, producer, job.text(), job.warmup());
        long start = System.nanoTime();
        sendAll(session, producer, job.text(), job.count());
        return System.nanoTime() - start;
    }

    static long oneByOne(Session session, Job job) throws JMSException {
        MessageProducer producer = producer(session, job);
        sendEach(session, producer, job.text(), job.warmup());
        long start = System.nanoTime();
        sendEach(session, producer, job.text(), job.count());
        return System.nanoTime() - start;
    }

    static long transacted(Session session, Job job) throws JMSException {
        MessageProducer producer = producer(session, job);
        sendTransacted(session, producer, job.text(), job.warmup());
        long start = System.nanoTime();
        sendTransacted(session, producer, job.text(), job.count());
        return System.nanoTime() - start;
    }

    private static void sendTransacted(Session session, MessageProducer producer, String text, int count)
            throws JMSException {
        for (int i = 1; i <= count; i++) {
            producer.send(session.createTextMessage(text));
            if (i % TRANSACTION == 0 || i == count) {
                session.commit();
            }
        }
    }

    private static MessageProducer producer(Session session, Job job) throws JMSException {
        MessageProducer producer = session.createProducer(session.createQueue(job.queue()));
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        return producer;
    }

    private static void sendEach(Session session, MessageProducer producer, String text, int count)
            throws JMSException {
        for (int i = 0; i < count; i++) {
            producer.send(session.createTextMessage(text));
        }
    }

    private static void sendAll(Session session, MessageProducer producer, String text, int count)
            throws JMSException, InterruptedException {
        Confirmations confirmations = new Confirmations(count);
        for (int i = 0; i < count; i++) {
            producer.send(session.createTextMessage(text), confirmations);
        }
        confirmations.await();
    }

    private static final class Confirmations implements CompletionListener {
        private final CountDownLatch missing;
        private volatile Exception failure;

        Confirmations(int count) {
            missing = new CountDownLatch(count);
        }

        @Override
        public void onCompletion(Message message) {
            missing.countDown();
        }

        @Override
        public void onException(Message message, Exception exception) {
            failure = exception;
            missing.countDown();
        }

        void await() throws InterruptedException {
            missing.await();
            if (failure != null) {
                throw new IllegalStateException("a send failed", failure);
            }
        }
    }
}

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
        return timed(session, job, Sending::sendAll);
    }

    static long oneByOne(Session session, Job job) throws JMSException, InterruptedException {
        return timed(session, job, Sending::sendEach);
    }

    /** Timed to the answer to the producer's close, because no such send waits for the broker. */
    static long nonPersistent(Session session, Job job) throws JMSException {
        MessageProducer warming = transientProducer(session, job);
        sendEach(session, warming, job.text(), job.warmup());
        warming.close();
        MessageProducer producer = transientProducer(session, job);
        long start = System.nanoTime();
        sendEach(session, producer, job.text(), job.count());
        producer.close();
        return System.nanoTime() - start;
    }

    private static MessageProducer transientProducer(Session session, Job job) throws JMSException {
        MessageProducer producer = session.createProducer(session.createQueue(job.queue()));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        return producer;
    }

    static long transacted(Session session, Job job) throws JMSException, InterruptedException {
        return timed(session, job, Sending::sendTransacted);
    }

    private interface Sends {
        void send(Session session, MessageProducer producer, String text, int count)
                throws JMSException, InterruptedException;
    }

    private static long timed(Session session, Job job, Sends sends) throws JMSException, InterruptedException {
        MessageProducer producer = session.createProducer(session.createQueue(job.queue()));
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        sends.send(session, producer, job.text(), job.warmup());
        long start = System.nanoTime();
        sends.send(session, producer, job.text(), job.count());
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

package bench;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Timed from the first request to the last reply. The replies come from this process, over another connection. Each
 * thread has a session and a temporary queue, and waits for each reply, as {@code QueueRequestor} does.
 */
final class Requesting {
    static final int IN_FLIGHT = 64;
    private static final long PATIENCE_MILLISECONDS = 30_000;

    private Requesting() {}

    /** The nanoseconds of all, and of each round trip in order of size. */
    record Result(long nanos, long[] latencies) {}

    static Result run(Connection asking, Connection answering, Job job, int threads) throws Exception {
        answer(answering.createSession(Session.AUTO_ACKNOWLEDGE), job);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Requestor> requestors = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                requestors.add(new Requestor(asking.createSession(Session.AUTO_ACKNOWLEDGE), job));
            }
            askAll(pool, requestors, job.warmup());
            long start = System.nanoTime();
            long[] latencies = askAll(pool, requestors, job.count());
            long nanos = System.nanoTime() - start;
            Arrays.sort(latencies);
            return new Result(nanos, latencies);
        } finally {
            pool.shutdown();
        }
    }

    private static long[] askAll(ExecutorService pool, List<Requestor> requestors, int count) throws Exception {
        List<Future<long[]>> futures = new ArrayList<>();
        int threads = requestors.size();
        for (int i = 0; i < threads; i++) {
            Requestor requestor = requestors.get(i);
            int share = count / threads + (i < count % threads ? 1 : 0);
            futures.add(pool.submit((Callable<long[]>) () -> requestor.ask(share)));
        }
        List<long[]> parts = new ArrayList<>();
        for (Future<long[]> future : futures) {
            parts.add(future.get());
        }
        return parts.stream().flatMapToLong(Arrays::stream).toArray();
    }

    private static void answer(Session session, Job job) throws JMSException {
        MessageProducer producer = session.createProducer(null);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        session.createConsumer(session.createQueue(job.queue())).setMessageListener(request -> {
            try {
                Message reply = session.createTextMessage(((TextMessage) request).getText());
                reply.setJMSCorrelationID(request.getJMSMessageID());
                producer.send(request.getJMSReplyTo(), reply);
            } catch (JMSException error) {
                throw new IllegalStateException(error);
            }
        });
    }

    private static final class Requestor {
        private final Session session;
        private final Job job;
        private final TemporaryQueue replies;
        private final MessageProducer producer;
        private final MessageConsumer consumer;

        Requestor(Session session, Job job) throws JMSException {
            this.session = session;
            this.job = job;
            replies = session.createTemporaryQueue();
            producer = session.createProducer(session.createQueue(job.queue()));
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            consumer = session.createConsumer(replies);
        }

        long[] ask(int count) throws JMSException {
            long[] latencies = new long[count];
            for (int i = 0; i < count; i++) {
                long start = System.nanoTime();
                TextMessage request = session.createTextMessage(job.text());
                request.setJMSReplyTo(replies);
                producer.send(request);
                Message reply = consumer.receive(PATIENCE_MILLISECONDS);
                Receiving.check(reply, job);
                if (!request.getJMSMessageID().equals(reply.getJMSCorrelationID())) {
                    throw new IllegalStateException("the reply is not that to the request");
                }
                latencies[i] = System.nanoTime() - start;
            }
            return latencies;
        }
    }
}

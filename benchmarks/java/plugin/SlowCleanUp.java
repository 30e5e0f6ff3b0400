import java.lang.instrument.Instrumentation;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

import io.netty.channel.Channel;
import io.netty.channel.EventLoop;

import org.apache.activemq.artemis.api.core.ActiveMQException;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.core.remoting.FailureListener;
import org.apache.activemq.artemis.core.remoting.impl.netty.NettyConnection;
import org.apache.activemq.artemis.core.server.MessageReference;
import org.apache.activemq.artemis.core.server.ServerConsumer;
import org.apache.activemq.artemis.core.server.ServerSession;
import org.apache.activemq.artemis.core.server.plugin.ActiveMQServerPlugin;
import org.apache.activemq.artemis.spi.core.protocol.RemotingConnection;

/**
 * Brings the race of docs/upstream about, by pauses alone: threads of Artemis are late, as on a busy machine.
 * The event loop of a lost connection pauses before its clean-up, and the queue goes on posting deliveries to the loop. Then
 * the loops of the queue's other consumers pause, so the messages that the clean-up gives back wait there. At last all
 * these loops go on at the same time: one sends what is left over, the others send what is their own.
 * The jar is a Java agent that does nothing, because an agent's jar is on the class path without a change of the launcher.
 */
public final class SlowCleanUp implements ActiveMQServerPlugin {

   private static final long PAUSE_MS = Long.getLong("pyjmsack.pause", 20);

   /** A window is filled for longer, so a cut comes more often while this goes on. */
   private static final long DELIVERY_NS = 300_000;

   /** So many messages are given to other consumers before the loops go on, if there are so many. */
   private static final int RETURNED = 100;

   private static final Map<String, ServerSession> SESSIONS = new ConcurrentHashMap<>();

   private static final Map<SimpleString, AtomicInteger> GIVEN_WHILE_CLEANING_UP = new ConcurrentHashMap<>();

   public static void premain(String arguments, Instrumentation instrumentation) {
   }

   /**
    * Lets the session clean up on the event loop of the lost connection, between two pauses. Artemis begins a second
    * clean-up on a thread of a pool, at the same time, and only the first of the two does the work. The race needs the one
    * on the event loop, which is the first if the machine is busy.
    */
   @Override
   public void afterCreateSession(ServerSession session) {
      SESSIONS.put(session.getName(), session);
      RemotingConnection connection = session.getRemotingConnection();
      List<FailureListener> listeners = new ArrayList<>(connection.getFailureListeners());
      listeners.removeIf(Pause.class::isInstance);
      listeners.sort(Comparator.comparing(listener -> !(listener instanceof ServerSession)));
      CleanUp cleanUp = new CleanUp(connection);
      listeners.add(0, new Pause(cleanUp::begin));
      listeners.add(new Pause(cleanUp::end));
      connection.setFailureListeners(listeners);
   }

   @Override
   public void afterCloseSession(ServerSession session, boolean failed) {
      SESSIONS.remove(session.getName());
   }

   @Override
   public void beforeDeliver(ServerConsumer consumer, MessageReference reference) {
      AtomicInteger given = GIVEN_WHILE_CLEANING_UP.get(consumer.getQueueName());
      if (given == null) {
         LockSupport.parkNanos(DELIVERY_NS);
      } else {
         given.incrementAndGet();
      }
   }

   private static final class CleanUp {

      private final RemotingConnection connection;

      private final CountDownLatch ended = new CountDownLatch(1);

      private final Set<SimpleString> queues = new HashSet<>();

      CleanUp(RemotingConnection connection) {
         this.connection = connection;
      }

      void begin() {
         for (ServerSession session : SESSIONS.values()) {
            if (session.getRemotingConnection() == connection) {
               session.getServerConsumers().forEach(consumer -> queues.add(consumer.getQueueName()));
            }
         }
         if (queues.isEmpty()) {
            return;
         }
         long deadline = System.nanoTime() + 25 * PAUSE_MS * 1_000_000;
         while (neighbours(1).isEmpty() && System.nanoTime() < deadline) {
            LockSupport.parkNanos(1_000_000);
         }
         LockSupport.parkNanos(PAUSE_MS * 1_000_000);
         queues.forEach(queue -> GIVEN_WHILE_CLEANING_UP.put(queue, new AtomicInteger()));
         neighbours(0).forEach(loop -> loop.execute(() -> await(ended)));
      }

      void end() {
         long deadline = System.nanoTime() + PAUSE_MS * 1_000_000;
         while (given() < RETURNED && System.nanoTime() < deadline) {
            LockSupport.parkNanos(100_000);
         }
         GIVEN_WHILE_CLEANING_UP.keySet().removeAll(queues);
         ended.countDown();
      }

      private int given() {
         return queues.stream().map(GIVEN_WHILE_CLEANING_UP::get).mapToInt(given -> given == null ? 0 : given.get()).sum();
      }

      /** Returns the event loops of other live connections with a consumer of the queues that had so many messages. */
      private Set<EventLoop> neighbours(int messages) {
         Set<EventLoop> loops = SESSIONS.values().stream()
            .filter(session -> session.getServerConsumers().stream().anyMatch(
               consumer -> queues.contains(consumer.getQueueName()) && consumer.getMessagesDelivered() >= messages))
            .map(session -> channel(session.getRemotingConnection()))
            .filter(Channel::isActive)
            .map(Channel::eventLoop)
            .collect(Collectors.toSet());
         loops.remove(channel(connection).eventLoop());
         return loops;
      }

      private static Channel channel(RemotingConnection connection) {
         return ((NettyConnection) connection.getTransportConnection()).getNettyChannel();
      }

      private static void await(CountDownLatch latch) {
         try {
            latch.await(5 * PAUSE_MS, TimeUnit.MILLISECONDS);
         } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
         }
      }
   }

   private record Pause(Runnable work) implements FailureListener {

      @Override
      public void connectionFailed(ActiveMQException exception, boolean failedOver) {
         work.run();
      }

      @Override
      public void connectionFailed(ActiveMQException exception, boolean failedOver, String scaleDownTargetNodeID) {
         work.run();
      }
   }
}

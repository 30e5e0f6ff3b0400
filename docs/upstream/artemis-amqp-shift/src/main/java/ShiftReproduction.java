import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.Queue;
import org.apache.activemq.artemis.core.server.ServerConsumer;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.server.plugin.ActiveMQServerPlugin;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Two consumers of one queue over AMQP. The connection of one is cut again and again, that of the other never.
 * Both accept every message that they are handed; nothing is rejected, expires, or becomes a dead letter.
 * So each message must be handed out at least once, and never twice on one connection.
 *
 * Properties: seconds (3600) and rounds (100): what ends first ends the run; flows (2 at a time), messages (2000 a round
 * and flow), cuts (20), healthy (true: with the consumer that is not cut), broker (host:port of a broker to use; without
 * it one is embedded), acceptor (options of the embedded acceptor), pause (20 ms: how much longer the embedded broker
 * takes to clean up after a lost connection), lastValue (false: the embedded broker makes last-value queues), client
 * (options of the Qpid JMS URL), log (OFF: level of the broker's log).
 */
public final class ShiftReproduction {

   private static final int INDIVIDUAL_ACKNOWLEDGE = 101; // Qpid JMS: acknowledge() accepts this one message
   private static final int ROUNDS = Integer.getInteger("rounds", 100);
   private static final int FLOWS = Integer.getInteger("flows", 2);
   private static final int MESSAGES = Integer.getInteger("messages", 2000);
   private static final int CUTS = Integer.getInteger("cuts", 20);
   private static final boolean HEALTHY = Boolean.parseBoolean(System.getProperty("healthy", "true"));
   private static final String OPTIONS = System.getProperty("client", "");
   private static final long CUT_WITHIN_MS = Long.getLong("cutWithin", 5);
   private static final long QUIET_MS = Long.getLong("quiet", 8000);

   private static final Totals totals = new Totals();

   private static final Logger log = Logger.getLogger(""); // the root: kept here, so that its level stays

   public static void main(String[] args) throws Exception {
      log.setLevel(Level.parse(System.getProperty("log", "OFF")));
      try (Broker broker = Broker.open()) {
         long end = System.nanoTime() + Long.getLong("seconds", 3600) * 1_000_000_000;
         for (int round = 1; round <= ROUNDS && System.nanoTime() < end; round++) {
            List<Thread> flows = new ArrayList<>();
            for (int flow = 1; flow <= FLOWS; flow++) {
               String name = "shift-" + System.nanoTime();
               flows.add(start(name, () -> new Flow(broker, name).run()));
            }
            for (Thread flow : flows) {
               flow.join();
            }
            System.out.println("round " + round + ": " + totals);
         }
      }
      System.out.println("end: " + totals);
      System.exit(totals.lost.get() + totals.twice.get() + totals.healthyClosed.get() > 0 ? 1 : 0);
   }

   interface Work {
      void run() throws Exception;
   }

   static Thread start(String name, Work work) {
      Thread thread = new Thread(() -> {
         try {
            work.run();
         } catch (Exception e) {
            totals.problems.incrementAndGet();
            System.out.println(name + ": " + e);
         }
      }, name);
      thread.start();
      return thread;
   }

   static final class Totals {
      final AtomicInteger flows = new AtomicInteger(), cuts = new AtomicInteger(), lost = new AtomicInteger(), flowsWithLoss = new AtomicInteger();
      final AtomicInteger twice = new AtomicInteger(), empty = new AtomicInteger(), healthyClosed = new AtomicInteger(), problems = new AtomicInteger(), stuck = new AtomicInteger();
      final AtomicInteger flowsHit = new AtomicInteger();

      @Override
      public String toString() {
         return flows + " flows, " + cuts + " cuts: " + flowsHit + " flows with an error; " + lost + " messages lost in " + flowsWithLoss + " flows, "
            + twice + " handed twice to one connection, " + empty + " empty, " + stuck + " stuck until their connection ended, healthy connection closed by the broker " + healthyClosed + " times, "
            + problems + " other problems";
      }
   }

   /** One queue, one producer, one consumer whose connection is cut, one whose connection is not. */
   static final class Flow {
      private final Broker broker;
      private final String name;
      private final Set<String> seen = ConcurrentHashMap.newKeySet();
      private final AtomicInteger twice = new AtomicInteger(), empty = new AtomicInteger(), healthyClosed = new AtomicInteger(), stuck = new AtomicInteger();
      private volatile long last = System.nanoTime();
      private final Semaphore consuming = new Semaphore(0);
      private volatile boolean produced, over;

      Flow(Broker broker, String name) {
         this.broker = broker;
         this.name = name;
      }

      void run() throws Exception {
         try (Relay relay = new Relay(broker.host, broker.port)) {
            List<Thread> threads = new ArrayList<>();
            threads.add(start(name + "-cut", () -> consume(relay.port(), false)));
            if (HEALTHY) {
               threads.add(start(name + "-healthy", () -> consume(broker.port, true)));
            }
            threads.add(start(name + "-producer", this::produce));
            for (int cut = 1; cut <= CUTS && seen.size() < MESSAGES && !quiet(); cut++) {
               consuming.tryAcquire(QUIET_MS, TimeUnit.MILLISECONDS); // a new consumer: the broker begins to fill its window
               LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(CUT_WITHIN_MS * 1_000_000));
               relay.cut();
               totals.cuts.incrementAndGet();
            }
            awaitTheEnd();
            over = true;
            for (Thread thread : threads) {
               thread.join();
            }
         }
         over = false;
         if (seen.size() < MESSAGES) { // whatever the two left behind
            stuck.addAndGet(-seen.size());
            last = System.nanoTime();
            Thread rest = start(name + "-rest", () -> consume(broker.port, false));
            awaitTheEnd();
            over = true;
            rest.join();
            stuck.addAndGet(seen.size());
         }
         report();
      }

      /** Wait until all were handed out, or the broker has none left, or nothing has happened for a long time. */
      private void awaitTheEnd() throws Exception {
         while (seen.size() < MESSAGES && !(produced && broker.isEmpty(name)) && !quiet()) {
            Thread.sleep(5);
         }
      }

      private boolean quiet() {
         return produced && System.nanoTime() - last > QUIET_MS * 1_000_000;
      }

      private void report() {
         List<String> lost = new ArrayList<>();
         for (int number = 0; number < MESSAGES; number++) {
            if (!seen.contains(Integer.toString(number))) {
               lost.add(Integer.toString(number));
            }
         }
         totals.flows.incrementAndGet();
         totals.lost.addAndGet(lost.size());
         totals.flowsWithLoss.addAndGet(lost.isEmpty() ? 0 : 1);
         totals.twice.addAndGet(twice.get());
         totals.empty.addAndGet(empty.get());
         totals.stuck.addAndGet(stuck.get());
         totals.healthyClosed.addAndGet(healthyClosed.get());
         if (!produced) {
            totals.problems.incrementAndGet();
         }
         if (!lost.isEmpty() || twice.get() + empty.get() + stuck.get() + healthyClosed.get() > 0) {
            totals.flowsHit.incrementAndGet();
            System.out.println(name + ": lost " + lost + ", twice " + twice + ", empty " + empty + ", stuck " + stuck + ", healthy connection closed " + healthyClosed);
         }
      }

      private void produce() throws Exception {
         try (Connection connection = connect(broker.port)) {
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            MessageProducer producer = session.createProducer(session.createQueue(name));
            for (int number = 0; number < MESSAGES; number++) {
               TextMessage message = session.createTextMessage(Integer.toString(number));
               message.setStringProperty("_AMQ_LVQ_NAME", Integer.toString(number)); // of use for a last-value queue only
               producer.send(message, DeliveryMode.NON_PERSISTENT, Message.DEFAULT_PRIORITY, 0);
               if (number % 100 == 99 || number == MESSAGES - 1) {
                  session.commit(); // so that none can be missing because it was never sent
               }
            }
            last = System.nanoTime();
            produced = true;
         }
      }

      /** Take and accept messages, on one connection after the other, until the flow is over. */
      private void consume(int port, boolean healthy) throws Exception {
         while (!over) {
            Set<String> here = ConcurrentHashMap.newKeySet();
            try (Connection connection = connect(port)) {
               Session session = connection.createSession(false, INDIVIDUAL_ACKNOWLEDGE);
               MessageConsumer consumer = session.createConsumer(session.createQueue(name));
               if (!healthy) {
                  consuming.release();
               }
               while (!over) {
                  Message message = consumer.receive(20);
                  if (message == null) {
                     session.getTransacted(); // throws when the connection has failed
                     continue;
                  }
                  take(message, here);
                  message.acknowledge();
               }
            } catch (JMSException e) {
               if (healthy && !over) {
                  healthyClosed.incrementAndGet();
                  System.out.println(name + ": the connection that nobody cut: " + e.getMessage().split("\n")[0].replaceAll("(.{160}).*", "$1..."));
               }
            }
         }
      }

      private void take(Message message, Set<String> here) throws JMSException {
         last = System.nanoTime();
         String number = message instanceof TextMessage text ? text.getText() : null;
         if (number == null) {
            empty.incrementAndGet();
            return;
         }
         seen.add(number);
         if (!here.add(number)) {
            twice.incrementAndGet();
         }
      }

      private Connection connect(int port) throws JMSException {
         String options = "?amqp.idleTimeout=0&jms.receiveLocalOnly=true&jms.connectTimeout=10000&jms.closeTimeout=2000" + (OPTIONS.isEmpty() ? "" : "&" + OPTIONS);
         Connection connection = new JmsConnectionFactory("amqp://" + broker.host + ":" + port + options).createConnection();
         connection.start();
         return connection;
      }
   }

   /** A TCP relay to the broker; cut() closes the sockets of all its connections at once. */
   static final class Relay implements Closeable {
      private final ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
      private final List<Socket> sockets = new CopyOnWriteArrayList<>();

      Relay(String host, int port) throws IOException {
         daemon(() -> {
            while (true) {
               Socket client = server.accept();
               Socket broker = new Socket(host, port);
               client.setTcpNoDelay(true);
               broker.setTcpNoDelay(true);
               sockets.add(client);
               sockets.add(broker);
               daemon(() -> client.getInputStream().transferTo(broker.getOutputStream()));
               daemon(() -> broker.getInputStream().transferTo(client.getOutputStream()));
            }
         });
      }

      private interface Transfer {
         void run() throws IOException;
      }

      private static void daemon(Transfer transfer) {
         Thread thread = new Thread(() -> {
            try {
               transfer.run();
            } catch (IOException e) {
               // the connection was cut, or the relay closed
            }
         }, "relay");
         thread.setDaemon(true);
         thread.start();
      }

      int port() {
         return server.getLocalPort();
      }

      void cut() throws IOException {
         for (Socket socket : sockets) {
            socket.close();
         }
         sockets.clear();
      }

      @Override
      public void close() throws IOException {
         server.close();
         cut();
      }
   }

   /**
    * Makes the race likely: the clean-up of a lost connection takes a little longer, as it does on a busy machine.
    * Until the consumer is closed, the queue goes on posting deliveries to the event loop that sleeps here.
    */
   static final class Pause implements ActiveMQServerPlugin {
      private static final long PAUSE_MS = Long.getLong("pause", 20);

      @Override
      public void beforeCloseConsumer(ServerConsumer consumer, boolean failed) {
         if (failed) {
            LockSupport.parkNanos(PAUSE_MS * 1_000_000);
         }
      }

      @Override
      public void afterCloseConsumer(ServerConsumer consumer, boolean failed) {
         if (failed) { // by now the queue hands the references to the next consumer
            LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(PAUSE_MS * 250_000 + 1));
         }
      }
   }

   /** The broker under test: the one named, or one in this process. */
   record Broker(String host, int port, EmbeddedActiveMQ embedded) implements AutoCloseable {

      static Broker open() throws Exception {
         String external = System.getProperty("broker");
         if (external != null) {
            URI uri = URI.create("tcp://" + external);
            return new Broker(uri.getHost(), uri.getPort(), null);
         }
         int port;
         try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
         }
         ConfigurationImpl configuration = new ConfigurationImpl();
         configuration.setPersistenceEnabled(false).setSecurityEnabled(false).setJMXManagementEnabled(false);
         configuration.addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + port + "?protocols=AMQP;" + System.getProperty("acceptor", ""));
         EmbeddedActiveMQ embedded = new EmbeddedActiveMQ();
         embedded.setConfiguration(configuration);
         embedded.start();
         AddressSettings settings = new AddressSettings().setMaxDeliveryAttempts(-1);
         if (Boolean.getBoolean("lastValue")) {
            settings.setDefaultLastValueQueue(true);
         }
         embedded.getActiveMQServer().registerBrokerPlugin(new Pause());
         embedded.getActiveMQServer().getAddressSettingsRepository().addMatch("#", settings);
         return new Broker("127.0.0.1", port, embedded);
      }

      /** Whether the queue holds nothing any more, not even messages under way; false for a broker of which we cannot know. */
      boolean isEmpty(String queue) {
         if (embedded == null) {
            return false;
         }
         Queue found = embedded.getActiveMQServer().locateQueue(new SimpleString(queue));
         return found.getMessageCount() == 0 && found.getDeliveringCount() == 0;
      }

      @Override
      public void close() throws Exception {
         if (embedded != null) {
            embedded.stop();
         }
      }
   }
}

import java.lang.instrument.Instrumentation;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;

import org.apache.activemq.artemis.api.core.ActiveMQException;
import org.apache.activemq.artemis.core.remoting.FailureListener;
import org.apache.activemq.artemis.core.server.MessageReference;
import org.apache.activemq.artemis.core.server.ServerConsumer;
import org.apache.activemq.artemis.core.server.ServerSession;
import org.apache.activemq.artemis.core.server.plugin.ActiveMQServerPlugin;
import org.apache.activemq.artemis.spi.core.protocol.RemotingConnection;

/**
 * Makes Artemis' clean-up of a lost connection longer, as a busy machine does.
 * The event loop of that connection pauses before the clean-up, and the queue goes on posting deliveries to the loop. A pause
 * in the clean-up itself would be too late, because Artemis stops the consumers of the session first.
 * The jar is a Java agent that does nothing, because an agent's jar is on the class path without a change of the launcher.
 */
public final class SlowCleanUp implements ActiveMQServerPlugin {

   private static final long PAUSE_MS = Long.getLong("pyjmsack.pause", 20);

   private static final long DELIVERY_NS = 300_000;

   public static void premain(String arguments, Instrumentation instrumentation) {
   }

   /**
    * Lets the session clean up on the event loop of the lost connection. Artemis begins a second clean-up on a thread of a
    * pool, at the same time, and only the first of the two does the work. The race needs the one on the event loop, which
    * is the first if the machine is busy.
    */
   @Override
   public void afterCreateSession(ServerSession session) {
      RemotingConnection connection = session.getRemotingConnection();
      List<FailureListener> listeners = new ArrayList<>(connection.getFailureListeners());
      listeners.removeIf(Pause.class::isInstance);
      listeners.sort(Comparator.comparing(listener -> !(listener instanceof ServerSession)));
      listeners.add(0, new Pause());
      connection.setFailureListeners(listeners);
   }

   @Override
   public void beforeDeliver(ServerConsumer consumer, MessageReference reference) {
      LockSupport.parkNanos(DELIVERY_NS); // a window is filled for longer, so a cut comes more often while this goes on
   }

   @Override
   public void afterCloseConsumer(ServerConsumer consumer, boolean failed) {
      if (failed) { // by now the queue hands the references to the next consumer
         LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(PAUSE_MS * 250_000 + 1));
      }
   }

   private static final class Pause implements FailureListener {

      @Override
      public void connectionFailed(ActiveMQException exception, boolean failedOver) {
         LockSupport.parkNanos(PAUSE_MS * 1_000_000);
      }

      @Override
      public void connectionFailed(ActiveMQException exception, boolean failedOver, String scaleDownTargetNodeID) {
         connectionFailed(exception, failedOver);
      }
   }
}

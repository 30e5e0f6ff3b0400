package hello;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jms.annotation.EnableJms;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.config.DefaultJmsListenerContainerFactory;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.core.JmsMessagingTemplate;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.support.converter.MappingJackson2MessageConverter;
import org.springframework.jms.support.converter.MessageConverter;
import org.springframework.jms.support.converter.MessageType;

/**
 * A service as Spring's guide to JMS builds one: typed JSON in, typed JSON out.
 *
 * <p>System properties: {@code url}, {@code queue}, and {@code form}: {@code TEXT} or {@code BYTES}. The service answers
 * each email on the queue. Each line on standard input is the name of a queue, to which the service sends an email; it
 * prints the answer to that email.
 */
@Configuration
@EnableJms
public class SpringService {
    @Bean
    CachingConnectionFactory connectionFactory() {
        return new CachingConnectionFactory(new JmsConnectionFactory(System.getProperty("url")));
    }

    @Bean
    MessageConverter converter() {
        MappingJackson2MessageConverter converter = new MappingJackson2MessageConverter();
        converter.setTargetType(MessageType.valueOf(System.getProperty("form")));
        converter.setTypeIdPropertyName("_type");
        converter.setTypeIdMappings(Map.of("hello.Email", Email.class));
        return converter;
    }

    @Bean
    DefaultJmsListenerContainerFactory jmsListenerContainerFactory(
            CachingConnectionFactory connections, MessageConverter converter) {
        DefaultJmsListenerContainerFactory factory = new DefaultJmsListenerContainerFactory();
        factory.setConnectionFactory(connections);
        factory.setMessageConverter(converter);
        factory.setSessionTransacted(true);
        return factory;
    }

    @Bean
    JmsMessagingTemplate template(CachingConnectionFactory connections, MessageConverter converter) {
        JmsTemplate template = new JmsTemplate(connections);
        template.setMessageConverter(converter);
        template.setReceiveTimeout(60_000);
        return new JmsMessagingTemplate(template);
    }

    @JmsListener(destination = "#{systemProperties['queue']}")
    Email answer(Email email) {
        Email answer = new Email("spring", email.getTo() + " wrote " + email.getBody());
        answer.setExtraNotes(email.getExtraNotes());
        return answer;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(SpringService.class);
                BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            JmsMessagingTemplate template = context.getBean(JmsMessagingTemplate.class);
            out.println("ready");
            String queue;
            while ((queue = in.readLine()) != null) {
                Email answer = template.convertSendAndReceive(queue, new Email("java", "grüß"), Email.class);
                out.println(answer == null ? "no answer" : answer.getTo() + " wrote " + answer.getBody());
            }
        }
    }
}

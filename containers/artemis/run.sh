#!/bin/sh
# BROKER_USER, BROKER_PASSWORD: the only login that is let in; without them everybody is, with any name.
# BROKER_TLS=true: TLS on 5671 (AMQP) and 61612 (STOMP) with server.p12 and the authorities in ca.p12 of /tls, both with
#   the password "changeit"; BROKER_CLIENT_CERTIFICATE=true asks for the client's.
# BROKER_OPTIONS: more options for Java. Arguments go to the broker: --properties /pair.properties
set -e
instance=/var/lib/broker
mkdir -p $instance/data $instance/etc
cp /opt/artemis/etc/* $instance/etc/
marks='-e s/<!--TLS// -e s/TLS-->//'
[ "$BROKER_TLS" = true ] || marks=
sed $marks -e '' /opt/artemis/etc/broker.xml >$instance/etc/broker.xml
security=false
if [ -n "$BROKER_USER" ]; then
  security=true
  printf '%s = %s\n' "$BROKER_USER" "$BROKER_PASSWORD" >$instance/etc/users.properties
  printf 'amq = %s\n' "$BROKER_USER" >$instance/etc/roles.properties
fi
if [ $security = true ] || [ $# -gt 0 ]; then
  main="org.apache.activemq.artemis.cli.Artemis run"
else # the other main is a second faster, and knows neither logins nor arguments
  main="org.apache.activemq.artemis.core.server.embedded.Main $instance"
fi
exec java -Xshare:auto ${ARCHIVE:--XX:SharedArchiveFile=/opt/classes.jsa} \
  -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss512k -Xms32m -Xmx1g -XX:+ExitOnOutOfMemoryError \
  -Dbroker.security=$security -Dbroker.client.certificate=${BROKER_CLIENT_CERTIFICATE:-false} \
  -Dartemis.home=/opt/artemis -Dartemis.instance=$instance -Dartemis.instance.etc=$instance/etc \
  -Dlog4j2.configurationFile=file:$instance/etc/log4j2.properties -Dlog4j2.disableJmx=true \
  -Djava.security.auth.login.config=$instance/etc/login.config -Djava.io.tmpdir=/tmp \
  $BROKER_OPTIONS -cp "$(echo /opt/artemis/lib/*.jar | tr ' ' :)" $main "$@"

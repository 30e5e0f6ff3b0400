#!/bin/sh
# BROKER_USER, BROKER_PASSWORD: the only login that is let in; without them everybody is, with any name.
# BROKER_TLS=true: TLS on 5671 (AMQP) and 61612 (STOMP) with server.p12 and the authorities in ca.p12 of /tls, both with
#   the password "changeit"; BROKER_CLIENT_CERTIFICATE=true asks for the client's.
# BROKER_OPTIONS: more options for Java.
set -e
base=/var/lib/broker
mkdir -p $base/data $base/etc
cp /opt/activemq/etc/* $base/etc/
marks='-e s/<!--TLS// -e s/TLS-->//'
[ "$BROKER_TLS" = true ] || marks=
sed $marks -e '' /opt/activemq/etc/activemq.xml >$base/etc/activemq.xml
login=login-open.config
if [ -n "$BROKER_USER" ]; then
  login=login.config
  printf '%s = %s\n' "$BROKER_USER" "$BROKER_PASSWORD" >$base/etc/users.properties
  printf 'users = %s\n' "$BROKER_USER" >$base/etc/groups.properties
fi
exec java -Xshare:auto ${ARCHIVE:--XX:SharedArchiveFile=/opt/classes.jsa} \
  -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss512k -Xms32m -Xmx1g -XX:+ExitOnOutOfMemoryError \
  -Dbroker.client.certificate=${BROKER_CLIENT_CERTIFICATE:-false} \
  -Dactivemq.home=$base -Dactivemq.base=$base -Dactivemq.conf=$base/etc -Dactivemq.data=$base/data \
  -Dlog4j2.configurationFile=file:$base/etc/log4j2.properties -Dlog4j2.disableJmx=true \
  -Djava.security.auth.login.config=$base/etc/$login -Djava.io.tmpdir=/tmp \
  $BROKER_OPTIONS -cp "$(echo /opt/activemq/lib/*.jar | tr ' ' :)" \
  org.apache.activemq.console.Main start "xbean:$base/etc/activemq.xml?validate=false"

#!/bin/sh
# Run the reproduction for five minutes; options such as -Dacceptor=remotingThreads=1 are passed on.
cd "$(dirname "$0")" && mvn -q -B package dependency:build-classpath -Dmdep.outputFile=target/class-path.txt "$@" || exit 2
exec java -Xmx1g -Dseconds=300 -Drounds=100000 "$@" -cp "target/classes:$(cat target/class-path.txt)" ShiftReproduction

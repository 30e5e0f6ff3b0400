"""An Artemis whose threads are late when a connection is lost, as on a busy machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.broker.artemis_distribution import ensure_artemis

__all__ = ["SlowCleanUp"]

_SOURCE = Path(__file__).resolve().parent / "java" / "plugin" / "SlowCleanUp.java"
_BROKER = Path(__file__).resolve().parent.parent / "pyjmsack" / "broker" / "etc" / "artemis" / "broker.xml"
_MANIFEST = "Manifest-Version: 1.0\nPremain-Class: SlowCleanUp\n"
_PLUGIN = '<broker-plugins><broker-plugin class-name="SlowCleanUp"/></broker-plugins>'


class SlowCleanUp:
    """A plugin for Artemis, compiled into ``directory``. Threads wait some ``milliseconds`` around each clean-up.

    Raises:
        FileNotFoundError: there is no ``javac`` on the path.
        subprocess.CalledProcessError: the broker's classes have changed, so the plugin does not compile.
    """

    def __init__(self, directory: Path, milliseconds: int) -> None:
        javac = shutil.which("javac")
        if javac is None:
            raise FileNotFoundError("--slow-cleanup needs a JDK, because it compiles a plugin: no javac is on PATH")
        classes = directory / "classes"
        class_path = ensure_artemis().class_path
        subprocess.run([javac, "-nowarn", "-cp", class_path, "-d", str(classes), str(_SOURCE)], check=True)
        self._jar = directory / "slow-cleanup.jar"
        with zipfile.ZipFile(self._jar, "w") as jar:
            jar.writestr("META-INF/MANIFEST.MF", _MANIFEST)
            for file in classes.glob("*.class"):
                jar.write(file, file.name)
        self._configuration = directory / "broker.xml"
        text = _BROKER.read_text().replace("</core>", f"  {_PLUGIN}\n  </core>")
        self._configuration.write_text(re.sub("(<max-delivery-attempts>)[0-9]+", r"\g<1>-1", text))
        self._pause = milliseconds

    def broker(self) -> EmbeddedArtemis:
        """Return a broker that has the plugin; it is not started."""
        options = (f"-javaagent:{self._jar}", f"-Dpyjmsack.pause={self._pause}")
        return EmbeddedArtemis(configuration=self._configuration, jvm_options=options)

"""The audit finds in ledgers the messages that were lost, doubled, delivered again, out of order or in doubt.

See docs/ledger.md.

``outages`` finds the times without a broker. ``rows`` makes one small row with a verdict for each message. ``findings``
runs the audit and counts the verdicts. ``looking`` asks the broker which messages it still has. ``page`` is the report
for a browser. ``session`` starts Spark for the command.
"""

from __future__ import annotations

from pyjmsack.spark.audit.findings import Audit, Finding, Latency, run_audit
from pyjmsack.spark.audit.looking import Look, look_into, queues_of
from pyjmsack.spark.audit.outages import Outage
from pyjmsack.spark.audit.page import looked_into, write_page
from pyjmsack.spark.audit.session import ClusterError, audit_session

__all__ = [
    "Audit",
    "ClusterError",
    "Finding",
    "Latency",
    "Look",
    "Outage",
    "audit_session",
    "look_into",
    "looked_into",
    "queues_of",
    "run_audit",
    "write_page",
]

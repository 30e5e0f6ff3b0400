"""The rules of JMS, without bytes, sockets, threads or ``await``.

Operations that may have to wait are generators ("steps"). A generator yields the thing that it waits for. A face drives
the generator by blocking a thread or by awaiting a future. So each rule is written once, reads from top to bottom, and
holds in both faces.
"""

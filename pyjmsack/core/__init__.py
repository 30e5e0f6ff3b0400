"""JMS meaning without bytes, sockets, threads or await.

Operations that may have to wait are generators ("steps") that yield what they wait for; a face drives them by blocking
a thread or by awaiting a future. So each rule is written once, reads from top to bottom, and holds in both faces.
"""

"""Sockets, TLS, threads and files. This is the only package that opens sockets."""

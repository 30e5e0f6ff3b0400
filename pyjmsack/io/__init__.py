"""The only package that opens sockets."""

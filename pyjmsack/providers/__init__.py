"""The wire protocols. Each protocol has its own package, and no such package imports another one."""

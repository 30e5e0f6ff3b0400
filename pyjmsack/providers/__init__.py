"""The wire protocols. Each protocol has a package, and no provider imports another provider."""

"""The network of a sandbox: an allow-list of hosts, the proxy that applies it, and the way to the proxy from inside."""

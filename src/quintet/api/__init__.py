"""The wire to a terminal server: the models that both ends share, and the client."""

"""HTTP: the application, its routes, who may use them, and the servers that run it."""

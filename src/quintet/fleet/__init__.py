"""The queue of tasks: they wait in a database, and workers on one machine or many carry them out."""

"""Runs a real agent CLI through scenarios and takes labelled frames of it."""

"""Metrics: likeness of traces and updates, accuracy and agreement, nulls, and how sure one can be."""

"""Engines: loops over the cells that the store does not have yet."""

"""Engines: loops over the cells of a study that are not done yet."""

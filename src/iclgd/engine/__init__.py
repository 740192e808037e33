"""Engines: roads over which the cells that a store lacks are run."""

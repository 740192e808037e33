"""Grids: many studies of any labs from one file, run, planned, tabled and compared as one."""

"""The store: a folder of cells, each whole or not there."""

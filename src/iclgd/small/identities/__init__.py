"""Identities of small models: what the papers write down, computed both ways."""

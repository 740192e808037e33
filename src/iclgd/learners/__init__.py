"""Learners: what turns demonstrations into a changed predictor."""

"""Where examples come from: text tasks and the episodes drawn from them, families of regressions."""

"""Where examples come from: text tasks, their examples, and the episodes drawn from them."""

"""Softmax attention as one gradient step on a kernel model f(x) = W φ(x) (Ren and Liu 2024), and what to change in it."""

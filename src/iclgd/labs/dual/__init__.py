"""Softmax attention as one gradient step on a kernel model f(x) = W φ(x) (Ren and Liu), and what to change in it."""

"""Small cells of every lab, by name: functions that return arrays by name.

All calls into the package are in the modules beside this one, so that a change of its interface changes those
functions and not the stored arrays. Names say what is stored, not where the package keeps it.
"""

from collections.abc import Callable
from functools import partial

from golden_dual import dual_heads, dual_trained
from golden_languages import RANDOM, language_arrays
from golden_linear import ALL, linear_arrays, linear_optimum
from golden_models import (
    compare_embedded,
    compare_floor,
    compare_options,
    compare_tiny,
    compare_untrained,
    trace_embedded,
    trace_tiny,
)
from golden_noise import noise
from torch import Tensor

CASES: dict[str, Callable[[], dict[str, Tensor]]] = {
    "compare-llama": partial(compare_tiny, "llama", "gd", "lcgd", "lcgd-paper"),
    "compare-gpt2": partial(compare_tiny, "gpt2", "gd", "lcgd"),
    "compare-gpt-neox": partial(compare_tiny, "gpt-neox", "gd", "lcgd"),
    "compare-gemma3": partial(compare_tiny, "gemma3", "gd", "lcgd"),
    "compare-options": compare_options,
    "compare-floor": compare_floor,
    "compare-untrained": compare_untrained,
    "compare-embedded": compare_embedded,
    "trace-tiny": trace_tiny,
    "trace-embedded": trace_embedded,
    "linear-one-layer": partial(linear_arrays, seeds=3, steps=60, learners=ALL),
    "linear-two-layers": partial(linear_arrays, layers=2, learners=("gd", "gd++")),
    "linear-softmax": partial(linear_arrays, attention="softmax", heads=2),
    "linear-shared": partial(linear_arrays, layers=3, shared=True),
    "linear-sine": partial(linear_arrays, task="sine", dx=1, width=8, hidden=16, rate=0.02),
    "linear-skewed": partial(
        linear_arrays, task="skewed", noise=0.3, draws="tokens", learners=("gd", "preconditioned")
    ),
    "linear-optimum": linear_optimum,
    "languages-pca": partial(language_arrays, encoder="pca", labels="sign", start="gd"),
    "languages-autoencoder": partial(language_arrays, encoder="autoencoder", negatives="edits"),
    "languages-end-to-end": partial(language_arrays, encoder="end-to-end", labels="sign"),
    "languages-random": partial(language_arrays, encoder="pca", start="gd", **RANDOM),
    "languages-two-layers": partial(
        language_arrays, encoder="pca", labels="sign", layers=2, start="random", seeds=(3, 4)
    ),
    "dual-llama": partial(dual_heads, "llama"),
    "dual-gemma2": partial(dual_heads, "gemma2"),
    "dual-gpt-oss": partial(dual_heads, "gpt-oss"),
    "dual-trained": dual_trained,
    "noise": noise,
}

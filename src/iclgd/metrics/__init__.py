"""Metrics: likeness of traces and updates, accuracy and agreement, nulls, and how sure one can be."""

from typing import Any

from iclgd.registry import Registry

METRICS: Registry[Any] = Registry("metric", "iclgd known", "iclgd.metrics", needs="bounds")  # of `Metric`
OWN = (
    ("SimAOU", "aou", "cosine of the updates of attention outputs (Deutch 2023)"),
    ("SimAOU_norm", "aou_norm", "SimAOU after scaling outputs to length one, as Dai 2022 did; biased upwards"),
    ("SimAM", "am", "cosine of attention logits over the query's own tokens (Dai 2022)"),
    ("SimAM_delta", "am_delta", "cosine of the updates of attention logits (Deutch 2023)"),
    ("contrast-AOU", "contrast_aou", "cosine of the parts of attention outputs that labels make, right minus wrong"),
    ("contrast-AOU-centred", "contrast_aou_centred", "contrast, outputs, the mean over queries taken off"),
    ("contrast-AM", "contrast_am", "cosine of the parts of attention logits that labels make"),
    ("contrast-AM-centred", "contrast_am_centred", "contrast, maps, the mean over queries taken off"),
    ("contrast-block", "contrast_block", "cosine of the parts of block outputs that labels make"),
    ("contrast-block-centred", "contrast_block_centred", "contrast, blocks, the mean over queries taken off"),
    ("label-share", "label_share", "length of the part that labels make over the length of the update"),
    ("SimBlock", "block", "cosine of the updates of block outputs"),
    ("tau", "tau", "Kendall's τ of attention to training tokens (Dai 2022)"),
    ("accuracy", "accuracy", "share of queries answered right"),
    ("calibrated", "calibrated", "accuracy, label words' mean probability over the queries taken off (Zhou 2023)"),
    (
        "contextual",
        "contextual",
        "accuracy, label words' probability for queries without content taken off (Zhao 2021)",
    ),
    ("agreement", "agrees", "share of queries answered as icl answers them"),
    ("KL", "kl", "divergence of the distribution over label words from icl's, in nats"),
    (
        "margins-missed",
        "margins_missed",
        "of icl's change of label margins beyond one shift for all queries: 0 is icl, 1 doing nothing",
    ),
    (
        "margins-recovered",
        "margins_recovered",
        "how far margins go along icl's change of them: 0 is nowhere, 1 as far as icl, more is too far",
    ),
    (
        "margins-recovered-centred",
        "margins_recovered_centred",
        "how far margins go along icl's change of them, the mean over queries taken off both",
    ),
)
for _name, _function, _summary in OWN:
    METRICS.add(_name, f"iclgd.metrics.compared:{_function}", _summary)

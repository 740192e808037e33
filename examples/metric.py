"""A metric: how often reading and training push a coordinate of the attention output the same way.

python examples/metric.py
iclgd compare --plugin examples/metric.py --metrics signs,SimAOU
"""

import iclgd


@iclgd.metric("same sign", bounds=(0, 1))
def signs(seen):
    """Share of coordinates in which two updates have the same sign; ½ for independent ones."""
    zero, icl, tuned = seen.outputs  # query layer dim
    return ((icl - zero).sign() == (tuned - zero).sign()).double().mean(-1)


iclgd.METRICS.add("signs", signs)

if __name__ == "__main__":
    from model import tiny

    study = iclgd.compare(model=tiny(), metrics=["signs", "SimAOU"], k=2, queries=4, init=["trained"], floor=False)
    print(study.page.text())

"""A lab: a spec that lists its cells, a run, a page. Its command, its Python function and its store come with it.

python examples/lab.py
iclgd chance --plugin examples/lab.py --dim 64 --seeds 5
"""

import numpy as np

import iclgd


class ChanceCell(iclgd.Spec):
    """All that changes a cell's numbers."""

    dim: int
    seed: int


class ChanceSpec(iclgd.LabSpec):
    """How alike two random directions are: what a cosine is worth in so many dimensions."""

    dim: int = iclgd.option(64, "Number of dimensions.", ge=1)
    seeds: iclgd.Seeds = iclgd.option((0, 1, 2), "How many draws, or which.")

    def cells(self):
        return [iclgd.Cell("chance", ChanceCell(dim=self.dim, seed=s), {"seed": s}) for s in self.seeds]


def run(cell, tools):
    a, b = np.random.RandomState(cell.spec.seed).standard_normal((2, 1000, cell.spec.dim))
    cosines = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    return iclgd.Result({}, [iclgd.array(cosines, "pair", quantity="cosine")])


def page(study):
    found = study.stack("seed", study.spec.seeds, quantity="cosine")  # seed pair
    sizes = np.sqrt((found**2).mean(-1))
    rows = [[str(seed), iclgd.Number(size)] for seed, size in zip(study.spec.seeds, sizes, strict=True)]
    section = iclgd.Section("By seed", table=iclgd.Table(["seed", "root mean square"], rows), brief=True)
    answer = f"Two random directions have a cosine of about {sizes.mean():.2f} in {study.spec.dim} dimensions."
    return iclgd.Page("Chance", f"{found.size:,} pairs", answer, [section])


CHANCE = iclgd.Lab(ChanceSpec, run, page)
iclgd.LABS.add("chance", CHANCE)

if __name__ == "__main__":
    study = iclgd.chance(dim=16, seeds=5)
    print(study.answer)
    print(study.table().text())

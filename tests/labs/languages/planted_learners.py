"""Numbers of a study of languages as they are planted, and the entry of a table."""

import numpy as np

from iclgd.labs.languages.measures import TRAINED

READS = {"accuracy": [0.9, 0.92, 0.94], ("accuracy", True): [0.5, 0.51, 0.49], "loss": 0.1}


def learner(mse, accuracy=0.8, cosine=0.9, correlation=0.7, loss=0.2):
    """Shuffled, every number is a tenth less, so that the two cannot be mistaken for each other."""
    plain = {"accuracy": accuracy, "cosine": cosine, "correlation": correlation, "mse": mse}
    less = {(n, True): np.subtract(v, 0.1).tolist() for n, v in plain.items()}
    return plain | less | {"loss": loss}


def everyone(layers=READS, near=(0.01, 0.012, 0.011), far=(0.3, 0.31, 0.29)):
    return {
        TRAINED: layers,
        "gd": learner(list(far), cosine=0.3),
        "preconditioned gd": learner(list(near), cosine=0.99),
        "no context": learner([0.5, 0.5, 0.5], cosine=0.1),
    }


def entry(table, row, column):
    rows = {line[0]: line for line in table.rows}
    return rows[row][list(table.header).index(column)]

"""What the page of a setting lets a reader choose in: curves of training by seed, matrices side by side."""

from collections.abc import Iterator

from iclgd.labs.languages.measures import TRAINED
from iclgd.labs.languages.reading import Reading
from iclgd.report.curves import Curve, curves
from iclgd.report.heat import Pictures, wipe
from iclgd.report.widgets import Widget

PANELS = {"accuracy": "accuracy", "loss": "½ squared error"}  # of the layers, beside the learners' levels
LIKENESS = {"mse": "MSE of predictions", "cosine": "cosine of sensitivities"}  # of every learner to the layers
ENCODER = {"loss": "validation loss", "symbols": "positions restored"}
MATRICES = ("WₖᵀW_q", "P Wᵥ")
NEAREST = "preconditioned gd"  # what one layer can be at best: shown first


def widget(reading: Reading, name: str) -> Widget | None:
    """Beside the printed figure of a name."""
    return {"training": _training, "autoencoder": _encoder, "weights": _weights}[name](reading)


def _training(reading: Reading) -> Widget:
    about = "Accuracy and loss of the layers over training, and how near each learner is to them, by seed."
    steps = reading.steps("training")
    log = (LIKENESS["mse"],)
    return curves(lambda: list(_curves(reading)), reading.seeds, steps, about, x="training step", log=log)


def _curves(reading: Reading) -> Iterator[Curve]:
    for quantity, panel in PANELS.items():
        yield Curve(panel, TRAINED, reading.training(TRAINED, quantity))
        for name in reading.learners:
            yield Curve(panel, name, reading.of(name, quantity))
    for quantity, panel in LIKENESS.items():
        for name in reading.learners:
            if (values := reading.training(name, quantity)).size:
                yield Curve(panel, name, values)


def _encoder(reading: Reading) -> Widget:
    about = "Validation loss of the autoencoder over its training, and the share of positions it restores, by seed."

    def made() -> list[Curve]:
        return [Curve(panel, "autoencoder", reading.encoding(quantity)) for quantity, panel in ENCODER.items()]

    return curves(made, reading.seeds, reading.steps("encoder"), about)


def _weights(reading: Reading) -> Widget:
    def pictures() -> Pictures:
        seeds = {f"trained, seed {seed}": reading.layer(TRAINED, i) for i, seed in enumerate(reading.seeds)}
        every = {NEAREST: reading.layer(NEAREST), **seeds, "gd": reading.layer("gd")}
        return {title: {who: pair[i] for who, pair in every.items()} for i, title in enumerate(MATRICES)}

    codes = reading.matrix(TRAINED, "qk").shape[-1] - 1
    about = "The matrices of the layer, constructed and trained, with a border between them that can be moved."
    return wipe(pictures, [("code", codes), ("y", 1)], about)

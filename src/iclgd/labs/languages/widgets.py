"""What a page lets a reader choose in: curves of training by seed and language, matrices side by side."""

from collections.abc import Iterator, Sequence

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


def widget(readings: Sequence[Reading], name: str) -> Widget:
    """Beside the printed figure of a name, of one setting or of several side by side."""
    return {"training": _training, "autoencoder": _encoder, "weights": _weights}[name](readings)


def _training(readings: Sequence[Reading]) -> Widget:
    about = "Accuracy and loss of the layers over training, and how near each learner is to them, by seed."
    first, log, groups = readings[0], (LIKENESS["mse"],), "language" if len(readings) > 1 else ""
    made = [curve for one in readings for curve in _curves(one, one.setting.language if groups else "")]
    steps = first.steps("training")
    return curves(lambda: made, first.seeds, steps, about, x="training step", log=log, groups=groups)


def _curves(reading: Reading, group: str = "") -> Iterator[Curve]:
    for quantity, panel in PANELS.items():
        yield Curve(panel, TRAINED, reading.training(TRAINED, quantity), group)
        for name in reading.learners:
            yield Curve(panel, name, reading.of(name, quantity), group)
    for quantity, panel in LIKENESS.items():
        for name in reading.learners:
            if (values := reading.training(name, quantity)).size:
                yield Curve(panel, name, values, group)


def _encoder(readings: Sequence[Reading]) -> Widget:
    about = "Validation loss of the autoencoder over its training, and the share of positions it restores, by seed."
    first, alone = readings[0], len(readings) == 1
    made = [
        Curve(panel, "autoencoder" if alone else one.setting.language, one.encoding(quantity))
        for quantity, panel in ENCODER.items()
        for one in readings
    ]
    return curves(lambda: made, first.seeds, first.steps("encoder"), about)


def _weights(readings: Sequence[Reading]) -> Widget:
    (reading,) = readings

    def pictures() -> Pictures:
        seeds = {f"trained, seed {seed}": reading.layer(TRAINED, i) for i, seed in enumerate(reading.seeds)}
        every = {NEAREST: reading.layer(NEAREST), **seeds, "gd": reading.layer("gd")}
        return {title: {who: pair[i] for who, pair in every.items()} for i, title in enumerate(MATRICES)}

    codes = reading.matrix(TRAINED, "qk").shape[-1] - 1
    about = "The matrices of the layer, constructed and trained, with a border between them that can be moved."
    return wipe(pictures, [("code", codes), ("y", 1)], about)

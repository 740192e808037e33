"""The smallest study of every lab: fields beside the model and the task."""

MODEL = {"k": 3, "queries": 2}
SMALL = {"seeds": 2, "batch": 8, "episodes": 20, "k": 6}
SPECS = {
    "compare": {**MODEL, "seeds": 2, "learners": "gd", "nulls": "random", "floor": False, "contrast": False},
    "trace": MODEL,
    "dual check": MODEL,
    "dual bound": {**MODEL, "held": 1},
    "dual modify": {**MODEL, "modifications": "regularised:alpha=0.1"},
    "dual train": {**SMALL, "tasks": "linear", "arms": "regularised:alpha=0.1", "dx": 3, "epochs": 1, "steps": 2},
    "languages run": {**SMALL, "encoder": "pca", "steps": 4, "dims": 3, "max_length": 6},
    "languages all": {"seeds": 1, "shrink": 500},
    "languages sample": {"language": "a*bc*"},
    "languages list": {},
    "linear train": {**SMALL, "dx": 3, "steps": 4, "learners": "gd"},
    "linear layers": {**SMALL, "dx": 3, "steps": 4, "kinds": "linear,ttt"},
    "linear depth": {**SMALL, "dx": 3, "steps": 4, "layers": 2},
    "implicit": {"k": 2, "queries": 2, "init": "trained", "calibration": "1,2", "exact": 2, "tokens": 2},
    "causal": {"k": 2, "queries": 2, "init": "trained", "heads": 1, "sets": 2},
    "identities": {"names": "any-path-is-descent", "seeds": 2},
    "order": {**MODEL, "seeds": 2, "orders": 3, "learners": "gd"},
    "exits": MODEL,
    "linear optimum": {"task": "gaussian", "dx": 3, "steps": 1},
}

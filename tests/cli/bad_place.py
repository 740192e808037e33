"""A folder of everything that can be wrong with a file, for the tables of bad input."""

import gzip
import json
import os
from pathlib import Path

from little import little_model, little_task

TASK = (
    "name: t\nversion: 1\ntitle: t\nsource: me\ntemplate: 'Text: {text} Label:'\nlabels: [bad, good]\nexamples: t.csv\n"
)
EPISODE = {
    "format": "iclgd-episode-1",
    "task": "t",
    "version": 1,
    "template": "Text: {text} Label:",
    "join": " ",
    "labels": ["bad", "good"],
    "demonstrations": [{"fields": {"text": "a"}, "label": 1}],
    "queries": [{"fields": {"text": "b"}, "label": 0}],
}
GRID = "parts: {a: {lab: linear optimum, steps: 1}}\n"

# file → its text
TEXTS = {
    "t.csv": "text,label\n" + "".join(f"good {i},{i % 2}\n" for i in range(40)),
    "empty.yaml": "",
    "list.yaml": "- a\n- b\n",
    "open.yaml": "name: [a\n",
    "twice.yaml": "k: 3\nk: 4\n",
    "tab.yaml": "a:\n\tb: 1\n",
    "bell.yaml": "a: \x07\n",
    "python.yaml": "!!python/object/apply:os.system ['true']\n",
    "alias.yaml": "a: *nobody\n",
    "date.yaml": "a: 2024-99-99\n",
    "deep.yaml": "[" * 1200,
    "levels.yaml": "a: " + "[" * 30 + "]" * 30 + "\n",
    # tasks
    "yes.yaml": TASK.replace("[bad, good]", "[Yes, No]"),
    "one.yaml": TASK.replace("[bad, good]", "[bad]"),
    "same.yaml": TASK.replace("[bad, good]", "[bad, bad]"),
    "blank.yaml": TASK.replace("[bad, good]", "['', bad]"),
    "numbers.yaml": TASK.replace("[bad, good]", "[1, 2]"),
    "words.yaml": TASK.replace("[bad, good]", "bad good"),
    "nolabels.yaml": TASK.replace("labels: [bad, good]\n", ""),
    "typo.yaml": TASK.replace("labels", "lables"),
    "upper.yaml": TASK.replace("name: t", "name: T T"),
    "version.yaml": TASK.replace("version: 1", "version: one"),
    "version0.yaml": TASK.replace("version: 1", "version: 0"),
    "nofield.yaml": TASK.replace("{text}", "text"),
    "label.yaml": TASK.replace("{text}", "{text} {label}"),
    "space.yaml": TASK.replace("Label:'", "Label: '"),
    "other.yaml": TASK.replace("{text}", "{premise}"),
    "away.yaml": TASK.replace("t.csv", "../t.csv"),
    "gone.yaml": TASK.replace("t.csv", "gone.csv"),
    "names.yaml": TASK + "label_names: [a]\n",
    "splits.yaml": TASK + "splits: 3\n",
    "nodata.yaml": TASK.replace("examples: t.csv\n", ""),
    "odd.yaml": TASK.replace("t.csv", "t.docx"),
    **{f"{name}.yaml": TASK.replace("t.csv", f"{name}.csv") for name in ("more", "quote", "maybe", "half", "alone")},
    **{f"{name}.yaml": TASK.replace("t.csv", f"{name}.jsonl") for name in ("json", "array", "unlike", "missing")},
    "more.csv": "text,label\na,b,1\n",
    "quote.csv": 'text,label\n"a,1\n',
    "maybe.csv": "text,label\na,maybe\n",
    "half.csv": "text,label\na,0.5\n",
    "alone.csv": "text,label\n" + "a b,1\n" * 9,
    "json.jsonl": '{"text": "a", "label": 0}\n{"text" 3}\n',
    "array.jsonl": "[1]\n",
    "unlike.jsonl": '{"text": "a", "label": 7}\n',
    "missing.jsonl": '{"text": "a"}\n',
    "t.docx": "no table",
    # episodes
    "episode.json": json.dumps(EPISODE),
    "brace.json": "{",
    "list.json": "[]",
    "format.json": json.dumps({**EPISODE, "format": "other"}),
    "nothing.json": json.dumps({**EPISODE, "queries": []}),
    "index.json": json.dumps({**EPISODE, "queries": [{"fields": {"text": "b"}, "label": 5}]}),
    "field.json": json.dumps({**EPISODE, "queries": [{"fields": {"premise": "b"}, "label": 0}]}),
    "onelabel.json": json.dumps({**EPISODE, "labels": ["bad"]}),
    "more.json": json.dumps({**EPISODE, "surprise": 1}),
    "negative.json": json.dumps({**EPISODE, "queries": [{"fields": {"text": "b"}, "label": -1}]}),
    # studies
    "grid.yaml": GRID,
    "toplevel.yaml": GRID + "colour: red\n",
    "noparts.yaml": "name: a\n",
    "badname.yaml": GRID + "name: ../up\n",
    "nolab.yaml": "parts: {a: {steps: 1}}\n",
    "badlab.yaml": "parts: {a: {lab: linear optimun}}\n",
    "badfield.yaml": "parts: {a: {lab: linear optimum, stepz: 1}}\n",
    "badvalue.yaml": "parts:\n  a:\n    lab: linear optimum\n    steps: none\n",
    "default.yaml": GRID + "defaults: {colour: red}\n",
    "defaults.yaml": GRID + "defaults: 3\n",
    "gridlist.yaml": "parts: {a: {lab: linear optimum, grid: [1]}}\n",
    "gridvalue.yaml": "parts: {a: {lab: linear optimum, grid: {steps: 1}}}\n",
    "gridhuge.yaml": "parts: {a: {lab: linear optimum, grid: {steps: &n ["
    + ",".join(map(str, range(1, 102)))
    + "], k: *n, dx: *n}}}\n",
    "exclude.yaml": "parts: {a: {lab: linear optimum, grid: {steps: [1, 2]}, exclude: [{steps: 7}]}}\n",
    "excludeall.yaml": "parts: {a: {lab: linear optimum, grid: {steps: [1]}, exclude: [{steps: 1}]}}\n",
    "excludeword.yaml": "parts: {a: {lab: linear optimum, exclude: steps}}\n",
    "about.yaml": GRID + "about: [1, 2]\n",
    "partyes.yaml": "parts:\n  yes: {lab: linear optimum}\n",
    "partyear.yaml": "parts:\n  2024: {lab: linear optimum}\n",
    "gridboth.yaml": "parts:\n  a:\n    lab: linear optimum\n    k: 3\n    grid: {k: [4, 5]}\n",
    "gridtwice.yaml": "parts: {a: {lab: linear optimum, grid: {dx: [3, 3]}}}\n",
    "gridplugin.yaml": "parts: {a: {lab: linear optimum, plugin: gone.py}}\n",
    # specs
    "badspec.yaml": "k: [1\n",
    "specfield.yaml": "colour: red\n",
    "specvalue.yaml": "k: -1\n",
    "specnull.yaml": "model: null\n",
    "specnested.yaml": "model: {a: b}\n",
    "specnul.yaml": 'task: "a\\0.yaml"\n',
    # plugins
    "syntax.py": "def (\n",
    "raises.py": "raise RuntimeError('not today')\n",
    "exits.py": "raise SystemExit(3)\n",
    "nothing.py": "",
    "half.py": "class Half:\n    pass\n",
    "named.py": "class icl:\n    def learn(self, subject, prompts):\n        pass\n",
    "twice.py": "import iclgd\niclgd.LEARNERS.add('gd', object)\n",
    "notes.txt": "no module\n",
}


def bad_place(folder: Path) -> Path:
    """The folder, filled: files, a tiny model and what is wrong with models, folders of others, pipes and links."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "latin.yaml").write_bytes("title: é\n".encode("latin-1"))
    (folder / "nul.yaml").write_bytes(b"\x00\x01")
    (folder / "latin.jsonl").write_bytes('{"text": "é", "label": 0}\n'.encode("latin-1"))
    (folder / "latin8.yaml").write_text(TASK.replace("t.csv", "latin.jsonl"))
    (folder / "torn.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n' * 99)[:-12])
    (folder / "torn.yaml").write_text(TASK.replace("t.csv", "torn.jsonl.gz"))
    (folder / "torn.parquet").write_bytes(b"PAR1 not really")
    (folder / "parquet.yaml").write_text(TASK.replace("t.csv", "torn.parquet"))
    (folder / "torn.tar").write_bytes(b"no tar")
    (folder / "torn.gguf").write_bytes(b"no model")
    (folder / "empty").mkdir()
    (folder / "theirs").mkdir()
    (folder / "theirs" / "diary.txt").write_text("mine")
    (folder / "data" / "sst2").mkdir(parents=True)
    (folder / "pickle").mkdir()
    (folder / "pickle" / "pytorch_model.bin").write_bytes(b"\x80")
    (folder / "noconfig").mkdir()
    (folder / "noconfig" / "model.safetensors").write_bytes(b"")
    (folder / "cells").mkdir()
    if hasattr(os, "mkfifo"):
        for name in ("pipe.yaml", "pipe.json", "pipe.py", "pipe.tar", "pipe.gguf"):
            os.mkfifo(folder / name)
    (folder / "nowhere").symlink_to("gone")
    (folder / "loop").symlink_to("loop")
    little_model(folder / "model")
    little_task(folder)
    return folder

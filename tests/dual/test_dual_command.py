"""`iclgd dual` as a user meets it."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from iclgd.cli import main
from iclgd.cli.dual import _words
from iclgd.languages.prepare import Data
from tiny import tiny_model, tiny_tokenizer

SMALL = ["--seeds", "2", "--epochs", "2", "--steps", "2", "--batch", "8", "--jobs", "1"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tiny")
    tiny_model("llama").save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return str(folder)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(["dual", *args])
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_train_makes_the_panels_and_keeps_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["train", "--task", "exponential", *SMALL]
    main(["dual", *args])
    assert "exponential · the best constant has" in capsys.readouterr().out
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("dual-")
    curves = json.loads((folder / "record.json").read_text(encoding="utf-8"))["test_loss"]["exponential"]
    assert len(curves) == 14
    assert [len(curve) for curve in curves["normal"]] == [3, 3]
    assert {path.name for path in folder.iterdir()} >= {"index.html", "panels.svg", "panels.png", "record.json"}
    assert "exists already" in refused(capsys, *args)


def test_a_folder_is_named_by_what_was_asked() -> None:
    for demos in ("15", "16"):
        main(["dual", "train", "--task", "linear", "--demos", demos, *SMALL])
    assert len(list(Path("runs").iterdir())) == 2


def test_train_takes_a_regular_language_and_tests_on_words_that_were_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iclgd.languages.prepare.Data", partial(Data, encoder_steps=5))
    for train, test in _words(Data(language="a*bc*", encoder="pca", dims=4, seeds=2)):
        shown, asked = ({tuple(row) for row in part.codes.flatten(0, 3).tolist() if any(row)} for part in (train, test))
        assert len(shown) > 20
        assert len(asked) > 10
        assert not shown & asked
    main(["dual", "train", "--language", "a*bc*", "--dx", "4", *SMALL])
    out = capsys.readouterr().out
    assert "a*bc* · the best constant has 1.000" in out  # half of the words are members, so labels ±1 have variance 1
    assert "20 demonstrations · 4 inputs" in out


@pytest.mark.parametrize(
    "args, sentence",
    [
        (["--language", "a*(b"], "is not a regular expression"),
        (["--language", "a*bc*", "--demos", "7"], "an even number"),
        (["--language", "a*bc*", "--task", "linear"], "give --task or --language"),
    ],
)
def test_a_language_that_cannot_be_trained_on_gets_a_sentence(
    capsys: pytest.CaptureFixture[str], args: list[str], sentence: str
) -> None:
    assert sentence in refused(capsys, "train", *args, *SMALL)


def test_check_says_the_residual_leaves_a_page_and_an_episode_that_can_be_asked_again(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["dual", "check", "--model", model, "--k", "2", "--queries", "2", "--out", "first"])
    said = capsys.readouterr().out
    assert "largest relative residual of 12 heads" in said
    first = json.loads(Path("first/record.json").read_text())
    assert first["largest_residual"] <= 1e-9
    page = Path("first/index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert ">2.3<" in page  # the last head of the last layer has its row
    again = ["check", "--model", model, "--task", "first/episode.json"]
    assert "leave out --k" in refused(capsys, *again, "--k", "2")
    main(["dual", *again, "--out", "first", "--overwrite"])
    assert json.loads(Path("first/record.json").read_text())["episode_sha256"] == first["episode_sha256"]


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    main(["dual"])
    assert "iclgd dual check" in capsys.readouterr().out


def test_bound_shows_every_number_of_demonstrations(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["dual", "bound", "--model", model, "--k", "4", "--held", "1", "--queries", "1", "--out", "here"])
    assert list(json.loads(Path("here/record.json").read_text())["log10"]["own"]) == ["1", "2", "3"]
    assert "measured gap" in capsys.readouterr().out


def test_bound_takes_an_episode_file_and_what_truncation_leaves(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["dual", "check", "--model", model, "--k", "4", "--queries", "1", "--out", "first"])
    main(["dual", "bound", "--model", model, "--task", "first/episode.json", "--held", "2", "--out", "file"])
    assert list(json.loads(Path("file/record.json").read_text())["log10"]["own"]) == ["1", "2"]
    capsys.readouterr()
    said = refused(capsys, "bound", "--model", model, "--task", "first/episode.json", "--held", "4")
    assert "lower --held" in said
    too_many = ["bound", "--model", model, "--k", "30", "--held", "1", "--queries", "1"]
    advice = re.search(r"use --k (\d+)", refused(capsys, *too_many))
    assert advice
    main(["dual", *too_many, "--k", advice[1], "--out", "fits"])
    main(["dual", *too_many, "--truncate", "--out", "cut"])


def test_a_window_that_hides_all_demonstrations_is_no_obstacle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_model("gemma3").save_pretrained(tmp_path / "windowed")
    tiny_tokenizer().save_pretrained(tmp_path / "windowed")
    given = ["--model", str(tmp_path / "windowed"), "--queries", "1"]
    main(["dual", "check", *given, "--k", "2", "--out", "seen"])
    assert json.loads(Path("seen/record.json").read_text())["largest_residual"] <= 1e-9
    main(["dual", "bound", *given, "--k", "3", "--held", "1", "--out", "bounded"])
    assert "see no demonstration" in capsys.readouterr().out
    json.loads(Path("bounded/record.json").read_text(), parse_constant=lambda text: pytest.fail(text))


def test_a_mixture_of_experts_with_sinks_is_checked_as_it_is(tmp_path: Path) -> None:
    tiny_model("gpt-oss").save_pretrained(tmp_path / "experts")
    tiny_tokenizer().save_pretrained(tmp_path / "experts")
    main(["dual", "check", "--model", str(tmp_path / "experts"), "--k", "2", "--queries", "1", "--out", "here"])
    assert json.loads(Path("here/record.json").read_text())["largest_residual"] <= 1e-9


def test_a_model_in_single_precision_has_its_dual_in_double(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loud = tiny_model("llama")
    for name, value in loud.named_parameters():
        if any(part in name for part in ("q_proj", "k_proj", "v_proj")):
            value.data.mul_(8)
    loud.save_pretrained(tmp_path / "loud")
    tiny_tokenizer().save_pretrained(tmp_path / "loud")
    given = ["--model", str(tmp_path / "loud"), "--k", "8", "--queries", "1", "--dtype", "float32"]
    main(["dual", "check", *given, "--out", "here"])
    assert json.loads(Path("here/record.json").read_text())["largest_residual"] <= 1e-4
    assert "nan" not in capsys.readouterr().out


def test_modify_puts_each_modification_beside_plain(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--with", "negative:k=1,beta=0.5", "--with", "regularised:alpha=0"]
    main(["dual", "modify", "--model", model, "--k", "2", "--queries", "4", "--out", "here", *args])
    scores = json.loads(Path("here/record.json").read_text())["scores"]
    assert list(scores) == ["plain", "negative:k=1,beta=0.5", "regularised:alpha=0"]
    assert scores["regularised:alpha=0"] == scores["plain"] != scores["negative:k=1,beta=0.5"]


@pytest.mark.parametrize(
    "args, says",
    [
        (["train", "--task", "linnear"], "no regression"),
        (["train", "--task", "sine"], "give --dx 1"),
        (["train", "--rate", "nan"], "finite number"),
        (["train", "--demos", "0"], "--demos"),
        (["check", "--k", "0"], "at least one"),
        (["bound", "--k", "0"], "lower --held"),
        (["train", "--demos", "2"], "raise --demos"),
        (["modify", "--k", "2", "--with", "negative:k=3"], "raise --k"),
        (["modify", "--with", "negative:k=1,k=2"], "give it once"),
        (["train", "--language", "(a|b)*"], "--alphabet"),
        (["train", "--alphabet", "abc"], "give --language"),
        (["modify", "--with", "negativ"], "Did you mean negative"),
        (["modify", "--with", "negative:beta=much"], "is a number"),
        (["check", "--task", "sentimant"], "Did you mean sentiment"),
        (["chek"], "No such command"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(
    args: list[str], says: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--model", model] if args[0] in ("check", "bound", "modify") else []
    said = refused(capsys, *args, *given)
    assert says in said
    assert said.startswith("iclgd: ")
    assert "Traceback" not in said

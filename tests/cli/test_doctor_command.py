"""`iclgd doctor`: what a model is, and what a comparison will do with it, tried out before it is needed."""

import dataclasses
import re

import pytest

from iclgd.models.doctor import Parity
from iclgd.models.subject import Subject
from little import little_model
from said import refused, run
from tiny import tiny_subject


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return little_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")


def test_doctor_says_what_a_model_is_and_that_it_is_ready(capsys, model):
    code, out, _ = run(capsys, "doctor", model, "--device", "cpu")
    assert code == 0
    for said in (
        "LlamaForCausalLM (llama)",
        "4, on 2 key heads",
        "256 tokens",
        "registered attention function",
        "k_proj and v_proj",
        "max |Δlogits| = 0, behind a shared prefix ",
        "(48 tokens)",
        "layer-causal  descent can be had",
        "noise floor   can be had in wider precision",
    ):
        assert said in out
    assert re.search(r"\(2\d\d tokens, a prompt of 32 demonstrations\)", out)
    assert out.splitlines()[-1] == f"ready   iclgd compare --model {model} --device cpu"


def test_doctor_looks_beyond_a_window(capsys, tmp_path):
    code, out, _ = run(capsys, "doctor", little_model(tmp_path / "model", "mistral"))
    assert code == 0
    assert "(56 tokens, beyond the window of 8)" in out


def test_doctor_works_in_low_precision_and_says_so_in_the_command(capsys, model):
    code, out, _ = run(capsys, "doctor", model, "--dtype", "bfloat16", "--device", "cpu")
    assert code == 0
    assert out.splitlines()[-1] == f"ready   iclgd compare --model {model} --dtype bfloat16 --device cpu"
    assert "noise floor   there is no wider format." in run(capsys, "doctor", model, "--dtype", "float64")[1]


def far(found: Parity) -> Parity:
    return dataclasses.replace(found, behind=found.scale)


@pytest.mark.parametrize("long, place", [(False, "48 tokens"), (True, r"2\d\d tokens, a prompt of 32 demonstrations")])
def test_doctor_refuses_a_model_whose_captured_attention_is_not_its_own(capsys, monkeypatch, model, long, place):
    from iclgd.models import doctor

    plain = doctor.parity
    monkeypatch.setattr(
        doctor, "parity", lambda subject, n: far(plain(subject, n)) if (n > 48) is long else plain(subject, n)
    )
    code, out, err = run(capsys, "doctor", model)
    assert code == 2
    assert out.count("too far apart") == 1
    assert "ready" not in out
    said = rf"iclgd: {model} cannot be used in float32: captured attention differs from its own \({place}\)\.\n"
    assert re.fullmatch(said, err)


def test_doctor_says_which_learner_and_floor_cannot_be_had_and_what_can(capsys, monkeypatch, model):
    subject = tiny_subject("llama")
    subject.layout.norm.register_forward_hook(lambda _module, _args, output: output + 1)
    plain = Subject.unembed
    monkeypatch.setattr(Subject, "unembed", lambda self, hidden: plain(self, hidden) * 2)
    monkeypatch.setattr("iclgd.models.load.load_subject", lambda spec, note: subject)
    monkeypatch.setattr(subject, "_try_a_step", unsupported)
    code, out, _ = run(capsys, "doctor", model)
    assert code == 0
    assert "layer-causal descent is not supported for LlamaForCausalLM" in out
    assert "llama cannot be computed in float64 on cpu: no such kernel." in out
    assert out.splitlines()[-1] == f"ready   iclgd compare --model {model} --learners gd"


def unsupported() -> None:
    raise RuntimeError("no such kernel")


def test_doctor_reads_the_files_again_before_it_loads_them(capsys, monkeypatch, model):
    order = []
    from iclgd.models import load

    plain = load.load_subject
    monkeypatch.setattr(load, "recheck", lambda spec: order.append(f"recheck {spec.name}"))
    monkeypatch.setattr(load, "load_subject", lambda spec, note: (order.append("load"), plain(spec, note))[1])
    assert run(capsys, "doctor", model)[0] == 0
    assert order == [f"recheck {model}", "load"]


@pytest.mark.parametrize(
    "given, complaint",
    [
        ((), "Missing argument 'MODEL'. See `iclgd doctor --help`."),
        (("",), "no model was named: `iclgd models` lists the embedded ones"),
        (("   ",), "no model was named"),
        (("smollm2-153m",), "Did you mean smollm2-135m"),
        (("./no-such-folder",), 'no model "./no-such-folder"'),
        (("none.gguf",), "cannot read none.gguf: No such file or directory; check the name."),
        (("\x1b[31mred",), r'no model "\x1b[31mred"'),
        (("smollm2-135m", "--dtype", "float8"), "--dtype takes"),
        (("smollm2-135m", "--revision", "main"), "has no revisions: --revision is for hub names"),
    ],
)
def test_what_is_no_model_is_answered_with_one_sentence(capsys, tmp_path, monkeypatch, given, complaint):
    monkeypatch.chdir(tmp_path)
    assert complaint in refused(capsys, tmp_path, "doctor", *given)

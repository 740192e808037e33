"""What a command says: its exit code and output, and the one sentence of a refusal."""

from pathlib import Path

from iclgd.cli import main


def run(capsys, *args) -> tuple[int, str, str]:
    """Exit code, output and error output of one command."""
    code = 0
    try:
        main([str(arg) for arg in args])
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys, folder: Path, *args) -> str:
    """The one sentence of a refusal: exit code 2, nothing on the output, nothing new in the folder."""
    before = sorted(folder.rglob("*"))
    code, out, err = run(capsys, *args)
    assert code == 2
    assert out == ""
    assert err.startswith("iclgd: ")
    assert err.count("\n") == 1
    assert sorted(folder.rglob("*")) == before
    return err

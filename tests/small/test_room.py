"""What cannot fit in memory is refused, and what fits is not."""

import pytest

from iclgd.errors import Refusal
from iclgd.small import room
from iclgd.small.room import check_inputs, check_room, check_weights
from iclgd.system import _limits, memory


def test_numbers_that_take_more_bytes_than_the_machine_has_are_refused(monkeypatch):
    monkeypatch.setattr(room, "memory", lambda: 4 * 1000 * 11 * 12)
    check_room(1000, 11, 12)
    with pytest.raises(Refusal, match=r"1,001 episodes of 11 .*: lower `k`, `episodes` or `batch`\.$"):
        check_room(1001, 11, 12)


def test_weights_and_covariances_that_no_memory_holds_are_refused(monkeypatch):
    monkeypatch.setattr(room, "memory", lambda: 8 * 3 * 2 * 10**2)
    check_weights(3, 2, 10)
    with pytest.raises(Refusal, match=r"^weights of 4 × 2 heads on 10 numbers take .*: lower `layers`, `heads`, "):
        check_weights(4, 2, 10)
    check_inputs(24)
    with pytest.raises(Refusal, match=r"^the covariance of 25 inputs takes .*: lower `dx`\.$"):
        check_inputs(25)


def test_where_nobody_knows_the_memory_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(room, "memory", lambda: None)
    check_room(10**12, 10**6, 10)


def test_this_machine_has_between_a_megabyte_and_a_petabyte():
    assert (there := memory()) is None or 2**20 < there < 2**50


@pytest.mark.parametrize("without", [AttributeError, ValueError, OSError])
def test_a_system_that_does_not_say_has_no_memory_to_compare_with(monkeypatch, without):
    def asked(_name):
        raise without

    monkeypatch.setattr("os.sysconf", asked)
    assert memory() is None


@pytest.mark.parametrize(
    "lines, files, found",
    [
        (["0::/"], {"memory.max": "4000"}, [4000]),  # version 2, in a container: its group is the root
        (["0::/job/step"], {"job/step/memory.max": "max", "job/memory.max": "5000"}, [5000]),
        (["4:memory:/docker/a"], {"memory/memory.limit_in_bytes": "6000"}, [6000]),  # version 1, in a container
        (
            ["9:cpu:/x", "4:memory:/job/step", "0::/"],
            {
                "memory/job/step/memory.limit_in_bytes": "7000",
                "memory/job/memory.limit_in_bytes": "8000",
                "cpu/x/memory.limit_in_bytes": "1",
                "memory/other/memory.limit_in_bytes": "2",
            },
            [7000, 8000],
        ),
        (["0::/../.."], {}, []),
        (["nonsense", "4:memory"], {"memory.max": "1"}, []),
    ],
)
def test_the_memory_of_a_container_is_what_its_groups_leave_it(tmp_path, lines, files, found):
    (tmp_path / "self").write_text("\n".join(lines) + "\n")
    for name, limit in files.items():
        (tmp_path / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / name).write_text(limit + "\n")
    assert list(_limits(tmp_path / "self", tmp_path / "groups")) == found


def test_the_least_of_machine_and_groups_counts_and_without_groups_the_machine(monkeypatch, tmp_path):
    machine = memory()
    if machine is None:
        pytest.skip("this system does not say")
    monkeypatch.setattr("iclgd.system._limits", lambda *_: iter([machine - 1, 2**62]))
    assert memory() == machine - 1
    assert list(_limits(tmp_path / "none", tmp_path)) == []

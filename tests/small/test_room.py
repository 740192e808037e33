"""What cannot fit in memory is refused, and what fits is not."""

import pytest

from iclgd.errors import Refusal
from iclgd.small import room
from iclgd.small.room import check_room
from iclgd.system import memory


def test_numbers_that_take_more_bytes_than_the_machine_has_are_refused(monkeypatch):
    monkeypatch.setattr(room, "memory", lambda: 4 * 1000 * 11 * 12)
    check_room(1000, 11, 12)
    with pytest.raises(Refusal, match=r"1,001 episodes of 11 .*: lower `k`, `episodes` or `batch`\.$"):
        check_room(1001, 11, 12)


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

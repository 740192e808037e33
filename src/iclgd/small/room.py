"""What cannot fit is refused before anything is drawn: a machine that runs out of memory may kill, or never answer."""

from iclgd.errors import Refusal
from iclgd.system import memory

BYTES = 4  # of a number in float32


def check_room(episodes: int, places: int, width: int) -> None:
    """Refuse so many episodes of so many demonstrations and queries, whose numbers alone are more than memory holds."""
    asked, there = episodes * places * width * BYTES, memory()
    if there is not None and asked > there:
        raise Refusal(
            f"{episodes:,} episodes of {places:,} demonstrations and queries take {asked / 1e9:,.0f} GB, and this "
            f"machine has {there / 1e9:,.0f} GB of memory: lower `k`, `episodes` or `batch`."
        )

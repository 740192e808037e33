"""What cannot fit is refused before anything is drawn: a machine that runs out of memory may kill, or never answer."""

from iclgd.errors import Refusal
from iclgd.system import memory

BYTES = 4  # of a number in float32


def check_room(episodes: int, places: int, width: int) -> None:
    """Refuse so many episodes of so many demonstrations and queries, whose numbers alone are more than memory holds."""
    what = f"{episodes:,} episodes of {places:,} demonstrations and queries take"
    _check(episodes * places * width * BYTES, what, "`k`, `episodes` or `batch`")


def check_inputs(dx: int) -> None:
    """Refuse so many inputs that their covariance, in float64, is more than memory holds."""
    _check(2 * dx**2 * BYTES, f"the covariance of {dx:,} inputs takes", "`dx`")


def check_weights(layers: int, heads: int, dim: int) -> None:
    """Refuse layers whose two matrices a head are more than memory holds, which would be made one by one."""
    what = f"weights of {layers:,} × {heads:,} heads on {dim:,} numbers take"
    _check(2 * layers * heads * dim**2 * BYTES, what, "`layers`, `heads`, `dx` or `width`")


def _check(asked: int, what: str, lower: str) -> None:
    there = memory()
    if there is not None and asked > there:
        raise Refusal(
            f"{what} {asked / 1e9:,.0f} GB, and this machine has {there / 1e9:,.0f} GB of memory: lower {lower}."
        )

"""What order does to layers of which it is known."""

from iclgd.labs.order.anchors import anchors


def order_of_layers(seed: int) -> dict[str, float]:
    """The spread of updates over twenty orders: linear and softmax attention without positions, the delta rule."""
    return anchors(20, seed)

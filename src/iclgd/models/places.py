"""Where a model's parts go, as far as words alone say it: no torch is imported here."""

import json
import re

from iclgd.errors import Refusal
from iclgd.spec import ModelSpec

SPREADS = ("auto", "balanced", "balanced_low_0", "sequential")
# kinds of device that some build of torch knows; whether one is here only torch can say
KINDS = "cpu|cuda|hip|hpu|ipu|maia|meta|mps|mtia|privateuseone|ve|vulkan|xla|xpu"
DEVICE = re.compile(rf"({KINDS})(:\d+)?", re.ASCII)
Places = str | dict[str, str | int] | None


def check_where(spec: ModelSpec) -> None:
    """Refuse what is no device, a map that cannot be read, and an arithmetic that a processor does not have."""
    check_device(spec.device)
    places(spec)
    if spec.dtype == "tf32" and spec.device.partition(":")[0] == "cpu":
        raise Refusal("tf32 is the arithmetic of a GPU: set `dtype` to float32 or bfloat16.")


def check_device(name: str, field: str = "device") -> None:
    if not (DEVICE.fullmatch(name) or (name == "auto" and field == "device")):
        raise not_here(name, field)


def not_here(name: str, field: str) -> Refusal:
    return Refusal(f'the device "{name}" is not available here: set `{field}` to cpu.')


def places(spec: ModelSpec) -> Places:
    """`auto`, `balanced`, … or, written as JSON, which part of the model goes to which device."""
    given = spec.device_map
    if given is None or given in SPREADS:
        return given
    if not given.lstrip().startswith("{"):
        check_device(given, "device_map")
        return given
    try:
        read = json.loads(given)
        found = {str(part): place if isinstance(place, int) else str(place) for part, place in read.items()}
    except ValueError as error:
        raise Refusal(f"`device_map` is not valid JSON ({error}): correct it.") from None
    for place in devices(found):
        check_device(place, "device_map")
    if "disk" in found.values():
        raise Refusal("`device_map` puts a part on the disk, where it cannot be trained: name devices that compute.")
    return found


def devices(found: Places) -> set[str]:
    """The devices that a map names."""
    if isinstance(found, dict):
        return {place for place in found.values() if isinstance(place, str) and place != "disk"}
    return set() if found is None or found in SPREADS else {found}

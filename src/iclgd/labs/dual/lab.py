"""The four labs on the dual."""

from iclgd.lab import Lab, later
from iclgd.labs.dual.spec import BoundSpec, CheckSpec, ModifySpec, TrainSpec

identity = later("iclgd.labs.dual.run:identity")

CHECK = Lab(
    CheckSpec,
    later("iclgd.labs.dual.run:run_check"),
    later("iclgd.labs.dual.check_page:page"),
    identity=identity,
    examples="  iclgd dual check --task sentiment --k 8\n  iclgd dual check --model gemma3-270m --queries 10\n",
)
BOUND = Lab(
    BoundSpec,
    later("iclgd.labs.dual.run:run_bound"),
    later("iclgd.labs.dual.bound_page:page"),
    identity=identity,
    examples="  iclgd dual bound --task sentiment --k 24 --held 8\n",
)
MODIFY = Lab(
    ModifySpec,
    later("iclgd.labs.dual.run:run_modify"),
    later("iclgd.labs.dual.modify_page:page"),
    identity=identity,
    examples="  iclgd dual modify --modifications negative:k=3:beta=0.1,regularised:alpha=-0.1\n",
)
TRAIN = Lab(
    TrainSpec,
    later("iclgd.labs.dual.train:run"),
    later("iclgd.labs.dual.train_page:page"),
    together=later("iclgd.labs.dual.train:together"),
    examples="  iclgd dual train --tasks linear --arms negative:k=3:beta=0.5 --seeds 4\n"
    "  iclgd dual train --languages 'a*bc*,random'\n",
)

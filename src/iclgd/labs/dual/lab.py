"""The four labs on the dual."""

from iclgd.lab import Lab
from iclgd.labs.dual import bound_page, check_page, modify_page, train_page
from iclgd.labs.dual.run import identity, run_bound, run_check, run_modify
from iclgd.labs.dual.spec import BoundSpec, CheckSpec, ModifySpec, TrainSpec
from iclgd.labs.dual.train import run, together

CHECK = Lab(
    CheckSpec,
    run_check,
    check_page.page,
    identity=identity,
    examples="  iclgd dual check --task sentiment --k 8\n  iclgd dual check --model gemma3-270m --queries 10\n",
)
BOUND = Lab(
    BoundSpec,
    run_bound,
    bound_page.page,
    identity=identity,
    examples="  iclgd dual bound --task sentiment --k 24 --held 8\n",
)
MODIFY = Lab(
    ModifySpec,
    run_modify,
    modify_page.page,
    identity=identity,
    examples="  iclgd dual modify --modifications negative:k=3:beta=0.1,regularised:alpha=-0.1\n",
)
TRAIN = Lab(
    TrainSpec,
    run,
    train_page.page,
    together=together,
    examples="  iclgd dual train --tasks linear --arms negative:k=3:beta=0.5 --seeds 4\n"
    "  iclgd dual train --languages 'a*bc*,random'\n",
)

"""The lab `compare`, put together."""

from iclgd.lab import Lab, later
from iclgd.labs.compare.spec import CompareSpec

COMPARE = Lab(
    CompareSpec,
    run=later("iclgd.labs.compare.run:run"),
    together=later("iclgd.labs.compare.run:together"),
    page=later("iclgd.labs.compare.page:page"),
    identity=later("iclgd.labs.compare.run:identity"),
    flops=later("iclgd.labs.compare.cost:flops"),
    version=2,
    examples=(
        "  iclgd compare                                     embedded model and task, a few minutes\n"
        "  iclgd compare --task sst2 --data DIR --seeds 3\n"
        "  iclgd compare --rates 1e-4,1e-3,1e-2              likeness against step size\n"
        "  iclgd compare --learners gd,gd:trains=all         two learners that differ in an option\n"
        "  iclgd compare --task sst2,sst5,mr,subj,agnews,cb --data DIR --k 32 --seeds 3 --queries 200"
        " --init trained,random,embeddings   Tables 1 and 2 of Deutch 2023\n"
    ),
)

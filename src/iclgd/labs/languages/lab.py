"""The languages lab as the frame sees it."""

from iclgd.lab import Lab, later
from iclgd.labs.languages.spec import AllSpec, RunSpec

RUN = Lab(
    RunSpec,
    later("iclgd.labs.languages.run:run"),
    later("iclgd.labs.languages.page:page"),
    together=later("iclgd.labs.languages.run:together"),
    examples="""\
  iclgd languages run                                  a*bc* with fixed labels, codes of an autoencoder
  iclgd languages run --language '((a|b)c)*' --labels sign --encoder pca
  iclgd languages run --language random --labels language --max-length 8
""",
)
ALL = Lab(
    AllSpec,
    None,
    later("iclgd.labs.languages.page_all:page_all"),
    examples="  iclgd languages all --jobs 2\n  iclgd languages all --shrink 100\n",
)

"""The languages lab as the frame sees it."""

from iclgd.lab import Lab
from iclgd.labs.languages.page import page
from iclgd.labs.languages.page_all import page_all
from iclgd.labs.languages.run import run, together
from iclgd.labs.languages.spec import AllSpec, RunSpec

RUN = Lab(
    RunSpec,
    run,
    page,
    together=together,
    examples="""\
  iclgd languages run                                  a*bc* with fixed labels, codes of an autoencoder
  iclgd languages run --language '((a|b)c)*' --labels sign --encoder pca
  iclgd languages run --language random --labels language --max-length 8
""",
)
ALL = Lab(AllSpec, None, page_all, examples="  iclgd languages all --jobs 2\n  iclgd languages all --shrink 100\n")

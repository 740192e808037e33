"""Shapes in signatures are checked while the tests run; tiny models need one thread."""

from jaxtyping import install_import_hook

install_import_hook("iclgd", "beartype.beartype")

import torch  # noqa: E402

torch.set_num_threads(1)

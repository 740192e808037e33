"""Whether the same training tokens matter: Kendall's τ of attention to them, read against trained on."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import kendalltau
from torch import Tensor


def training_token_tau(
    context: Float[Tensor, "query layer context"],
    spans: Sequence[range],
    tested: Float[Tensor, "query layer qdim"],
    trained: Sequence[Float[Tensor, "layer _ qdim"]],
) -> Float[Tensor, "query layer"]:
    """Kendall's τ between ICL's attention to each demonstration token and finetuning's (Dai 2022, §4.2).

    For ICL: attention logits to the demonstrations' own tokens (``spans`` of the context), summed over heads. For
    finetuning: ⟨q_train, q_test⟩, the dual form's attention, q_train taken as each demonstration was learned and
    q_test after training. Their code puts both through a softmax first, which changes no rank. Where a model rotates
    queries by position, q is taken before the rotation (theirs has none). nan below two tokens: they have no order.
    """
    if sum(map(len, spans)) < 2:
        return torch.full(context.shape[:2], torch.nan, dtype=torch.float64)
    columns = torch.tensor([index for span in spans for index in span])
    read = context[:, :, columns].double().numpy()
    learned = torch.cat(list(trained), 1).double()  # layer token qdim
    weights = torch.einsum("ltd,qld->qlt", learned, tested.double()).numpy()
    taus = [
        [kendalltau(read[q, layer], weights[q, layer]).statistic for layer in range(read.shape[1])]
        for q in range(len(read))
    ]
    return torch.from_numpy(np.array(taus, dtype=float).reshape(read.shape[:2]))

"""A model in memory: any transformers model with its tokenizer. This one is tiny, random and made on the spot.

python examples/model.py
"""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import iclgd


def tiny():
    """Two layers with random weights, and a tokenizer of single bytes."""
    pieces = ["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bytewise = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, []))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytewise, bos_token="<s>", eos_token="</s>")
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=len(pieces), max_position_embeddings=1024, bos_token_id=0, eos_token_id=1, **size)
    return LlamaForCausalLM(config), tokenizer


if __name__ == "__main__":
    study = iclgd.compare(model=tiny(), learners=["gd"], k=2, queries=4, init=["trained"], floor=False)
    print(study.answer)
    print(study.table().text())
    print(study.frame(metric="SimAOU", null=None, floor=None).groupby("layer")["value"].mean())

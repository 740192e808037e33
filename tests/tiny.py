"""Tiny models with random weights, one for each architecture the lab supports, and a tokenizer of whole words."""

from collections.abc import Callable
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers import models as zoo

from iclgd.models.subject import Subject

VOCABULARY = 99
SIZE: dict[str, Any] = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
COMMON: dict[str, Any] = {
    **SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
}
GROUPED: dict[str, Any] = {**COMMON, "num_key_value_heads": 2}
FALCON: dict[str, Any] = {**SIZE, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
BIGCODE: dict[str, Any] = {**SIZE, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 256}
VISION: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}
WINDOWED: dict[str, Any] = {"head_dim": 8, "sliding_window": 8}

# how captured → architecture → its configuration
REGISTERED: dict[str, Callable[[], Any]] = {
    "llama": lambda: zoo.llama.LlamaConfig(**GROUPED),
    "qwen2": lambda: zoo.qwen2.Qwen2Config(**GROUPED),
    "qwen3": lambda: zoo.qwen3.Qwen3Config(**GROUPED, head_dim=12),
    "smollm3": lambda: zoo.smollm3.SmolLM3Config(**GROUPED, no_rope_layer_interval=2),
    "gpt2": lambda: zoo.gpt2.GPT2Config(**SIZE, n_embd=32, n_layer=3, n_head=4, n_positions=256),
    "opt": lambda: zoo.opt.OPTConfig(**{**COMMON, "intermediate_size": None}, ffn_dim=48, word_embed_proj_dim=32),
    "gpt-neox": lambda: zoo.gpt_neox.GPTNeoXConfig(**COMMON),
    "phi": lambda: zoo.phi.PhiConfig(**COMMON, partial_rotary_factor=0.5),
    "phi3": lambda: zoo.phi3.Phi3Config(**GROUPED),
    "mistral": lambda: zoo.mistral.MistralConfig(**GROUPED, sliding_window=8),
    "gemma2": lambda: zoo.gemma2.Gemma2Config(
        **GROUPED, **WINDOWED, attn_logit_softcapping=0.5, final_logit_softcapping=5.0, query_pre_attn_scalar=8
    ),
    "gemma3": lambda: zoo.gemma3.Gemma3TextConfig(
        **GROUPED,
        **WINDOWED,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        query_pre_attn_scalar=8,
    ),
    "olmo2": lambda: zoo.olmo2.Olmo2Config(**GROUPED),
    "gpt-oss": lambda: zoo.gpt_oss.GptOssConfig(
        **GROUPED,
        **WINDOWED,
        num_local_experts=4,
        num_experts_per_tok=2,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "gemma3-sees": lambda: zoo.gemma3.Gemma3Config(
        text_config=REGISTERED["gemma3"](), vision_config=dict(VISION), image_token_index=98, mm_tokens_per_image=4
    ),
    "cohere": lambda: zoo.cohere.CohereConfig(**GROUPED, logit_scale=0.25),
    "cohere2": lambda: zoo.cohere2.Cohere2Config(**GROUPED, logit_scale=0.25, sliding_window=8),
    "granite": lambda: zoo.granite.GraniteConfig(
        **GROUPED, logits_scaling=3.0, residual_multiplier=0.5, attention_multiplier=0.2, embedding_multiplier=2.0
    ),
    "bigcode-multi-query": lambda: zoo.gpt_bigcode.GPTBigCodeConfig(**BIGCODE, multi_query=True),
    "bigcode-heads": lambda: zoo.gpt_bigcode.GPTBigCodeConfig(**BIGCODE, multi_query=False),
}
INTERCEPTED: dict[str, Callable[[], Any]] = {
    "xglm": lambda: zoo.xglm.XGLMConfig(
        **SIZE, d_model=32, ffn_dim=48, num_layers=3, attention_heads=4, max_position_embeddings=256
    ),
    "gptj": lambda: zoo.gptj.GPTJConfig(**SIZE, n_embd=32, n_layer=3, n_head=4, rotary_dim=4, n_positions=256),
    "gpt-neo": lambda: zoo.gpt_neo.GPTNeoConfig(
        **SIZE,
        hidden_size=32,
        num_layers=4,
        attention_types=[[["global", "local"], 2]],
        num_heads=4,
        window_size=8,
        intermediate_size=48,
        max_position_embeddings=256,
    ),
    "bloom": lambda: zoo.bloom.BloomConfig(**SIZE, hidden_size=32, n_layer=3, n_head=4),
    "falcon-heads": lambda: zoo.falcon.FalconConfig(**FALCON, multi_query=False, new_decoder_architecture=False),
    "falcon-multi-query": lambda: zoo.falcon.FalconConfig(**FALCON, multi_query=True, new_decoder_architecture=False),
    "falcon-groups": lambda: zoo.falcon.FalconConfig(**FALCON, new_decoder_architecture=True, num_kv_heads=2),
    "falcon-alibi": lambda: zoo.falcon.FalconConfig(
        **FALCON, multi_query=False, new_decoder_architecture=False, alibi=True
    ),
    "mpt": lambda: zoo.mpt.MptConfig(**SIZE, d_model=32, n_heads=4, n_layers=3, max_seq_len=256),
    "codegen": lambda: zoo.codegen.CodeGenConfig(
        **SIZE, n_embd=64, n_layer=3, n_head=8, rotary_dim=4, n_positions=256, n_ctx=256
    ),
}
ARCHITECTURES = {**REGISTERED, **INTERCEPTED}


def tiny_model(architecture: str, seed: int = 0, dtype: torch.dtype = torch.float32) -> Any:
    """Random weights, larger than a fresh initialisation's, so that attention is not uniform."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(ARCHITECTURES[architecture](), attn_implementation="eager").eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn_like(parameter)
            parameter.copy_(noise * 0.2 if parameter.ndim > 1 or "bias" in name else parameter + noise * 0.2)
    return model.to(dtype)


def tiny_tokenizer(bos: bool = True) -> PreTrainedTokenizerFast:
    """Words with their leading space, as in GPT-2; every other character is a byte."""
    words = " Sentence Label Negative Positive Word Group red blue green good bad film cat rose car"
    pieces = ["<pad>", "<s>", "</s>", *(f"Ġ{word}" for word in words.split())]
    pieces += ["Sentence", "Word", "ĊĊ", "Ġ", ":", *map(chr, range(ord("a"), ord("z") + 1))]
    pieces += [f"<{i}>" for i in range(VOCABULARY - len(pieces))]
    ids = {piece: index for index, piece in enumerate(pieces)}
    made = Tokenizer(models.WordLevel(ids, unk_token="<0>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    roles = {"bos_token": "<s>"} if bos else {}
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", pad_token="<pad>", **roles)


def tiny_subject(architecture: str, seed: int = 0, dtype: torch.dtype = torch.float32, bos: bool = True) -> Subject:
    return Subject(tiny_model(architecture, seed, dtype), tiny_tokenizer(bos), architecture)


def tokens(batch: int, length: int, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (batch, length), generator=random)

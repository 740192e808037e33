"""Goldwaser et al. 2026, "Equivalence of Context and Parameter Updates in Modern Transformer Blocks" (2511.17864)."""

from iclgd.claims.claim import Place, Published, Read, claim, exact, identity, number
from iclgd.claims.expect import AtLeast, AtMost, Together
from iclgd.claims.reading_prompts import block_residuals, tokens_alike

FAMILIES = ("Llama", "Qwen3", "GPT-2", "GPT-NeoX", "OLMo 2", "Gemma 3")
FIELDS = {"task": ("sentiment",), "k": 8, "queries": 16, "seeds": 1}


def at(where: str) -> Place:
    return Place("goldwaser2026", where)


exact(
    "goldwaser2026.gated-blocks",
    "Patches of rank one to a gated MLP's first and last maps leave every block and the logits without the context.",
    at("theorem 1, algorithm 1"),
    "prompt-as-patches",
    "form A",
    note="Of untrained weights: algebra.",
)
exact(
    "goldwaser2026.last-map-is-enough",
    "A patch exists for any MLP whose outer function can be steered to any output: its last linear map is enough.",
    at("abstract"),
    "prompt-as-patches",
    "form C",
)
claim(
    "goldwaser2026.families",
    "A prompt is such patches in blocks of any modern design: gated or not, parallel or not, norms before or behind.",
    at("abstract; title"),
    Together({family: AtMost(1e-12, each=True) for family in FAMILIES}),
    identity("patches-by-family"),
    number(*FAMILIES),
    of="what the worst of the forms A, B and C (or D) leaves of a block or of the gap in the logits, in float64",
    note="Of untrained weights. Norms that transformers computes in float32 are computed in float64 here; with its own "
    "the identity stops at 1e-7.",
)
exact(
    "goldwaser2026.norm-behind",
    "Where a norm stands behind the MLP (Gemma), patches of rank one and of the norm's scale are exact.",
    at("abstract; theorem 1"),
    "patches-behind-norms",
    note="They patch the scale coordinate by coordinate; one number for all does it.",
)
claim(
    "goldwaser2026.scale-is-needed",
    "Without a patch of that norm's scale the others do not suffice.",
    at("abstract; theorem 1"),
    AtLeast(0.01, each=True),
    identity("patches-behind-norms"),
    number("gain kept"),
    of="the gap in the logits that is left",
    chosen_after=True,
)
claim(
    "goldwaser2026.same-tokens",
    "With patches computed anew for each token a model generates without the context what it generates behind it.",
    at("abstract; experiments"),
    Together({"patched": AtLeast(1.0, each=True), "without patches": AtMost(0.5, each=True)}),
    identity("generation-with-patches"),
    number("patched", "without patches"),
    of="share of tokens that are those behind the context",
    published=Published("all tokens alike in float32, .875 in bfloat16", "Gemma 3 1B and 4B, five prompts"),
    note="Of untrained weights. That without patches at least half are others is our limit: it says that the context "
    "matters.",
)
claim(
    "goldwaser2026.pretrained",
    "In a pretrained model the context is such patches exactly, block after block.",
    at("algorithm 1, experiments"),
    AtMost(1e-12, each=True),
    Read(
        "implicit",
        {**FIELDS, "precisions": ("float64",), "init": ("trained",)},
        only={"part": ("exact",), "precision": ("float64",)},
    ),
    block_residuals,
    of="largest residual of a block, in float64, for forms A, B and C (or D)",
    over="form",
    tier="minutes",
    needs=("model",),
    drift=10.0,
)
claim(
    "goldwaser2026.fifty-tokens",
    "A pretrained model generates fifty tokens with patches instead of the context, all of them alike.",
    at("experiments"),
    AtLeast(1.0, each=True),
    Read(
        "implicit",
        {**FIELDS, "precisions": ("float32",), "tokens": 50, "init": ("trained",)},
        only={"part": ("exact",), "precision": ("float32",)},
    ),
    tokens_alike,
    of="share of tokens alike, in float32",
    over="prompt",
    published=Published("1.00", "Gemma 3 1B and 4B, five prompts"),
    tier="minutes",
    needs=("model",),
)

"""Models on the Hugging Face hub: asked for once, and answered fast where the hub cannot be reached."""

from typing import Any

from iclgd.errors import Refusal
from iclgd.models.identity import cached_commit, check_model, is_local
from iclgd.spec import ModelSpec

PATIENCE = 10.0  # seconds for the hub's first answer; its own client would try for half a minute


def ask_hub(spec: ModelSpec) -> None:
    """Fetch a hub model's configuration, whose commit names the weights, unless the cache has it."""
    check_model(spec)
    if is_local(spec) or cached_commit(spec) is not None:
        return
    from huggingface_hub import constants, hf_hub_download

    here = f"{spec.name} is no folder here and not in the hub's cache"
    if constants.HF_HUB_OFFLINE:
        raise Refusal(f"{here}, and HF_HUB_OFFLINE forbids to fetch it: unset that, or name a folder.")
    try:
        answer = _head(spec)
    except Exception:  # the client raises many kinds for one thing: there is no way to the hub
        raise Refusal(
            f"{here}, and the hub cannot be reached: check the network, or take an embedded model (`iclgd models`), a "
            "folder or a .gguf file."
        ) from None
    if answer.status_code in (401, 403, 404):
        raise Refusal(
            f"{here}, and the hub shows no such model: check the name and `revision`, or log in if it is private."
        )
    try:
        hf_hub_download(spec.name, "config.json", revision=spec.revision)
    except Exception as error:
        raise Refusal(f"{here}, and could not be fetched ({type(error).__name__}): try again.") from None


def _head(spec: ModelSpec) -> Any:
    """One question, without the client's retries."""
    from huggingface_hub import get_session, hf_hub_url
    from huggingface_hub.utils import build_hf_headers

    url = hf_hub_url(spec.name, "config.json", revision=spec.revision)
    return get_session().head(url, headers=build_hf_headers(), timeout=PATIENCE)

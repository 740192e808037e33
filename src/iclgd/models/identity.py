"""placeholder until the models branch lands"""

from iclgd.spec import ModelSpec


def weights_identity(spec: ModelSpec) -> str:
    import hashlib
    from pathlib import Path

    from iclgd.files import file_sha256
    from iclgd.models.load import resolve

    folder = Path(resolve(spec))
    digest = hashlib.sha256()
    for f in sorted(folder.iterdir()):
        if f.is_file():
            digest.update(file_sha256(f).encode())
    return digest.hexdigest()


def check_model_name(name: str) -> None: ...

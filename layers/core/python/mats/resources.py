"""Paths of the files beside the code: below `mats/_resources` in an installed wheel, otherwise in the clone."""

from importlib.metadata import distribution
from pathlib import Path

REPOSITORY = Path(__file__).parents[4]  # The root of the clone; without meaning in an installed wheel
_PACKAGED = Path(__file__).with_name("_resources")
_SWAGGER_UI = "drf_spectacular_sidecar/static/drf_spectacular_sidecar/swagger-ui-dist"


def resource(path: str) -> Path:
    """The file or folder at this path of the repository, such as `console` or `examples`; it need not exist."""
    packaged = _PACKAGED / path
    return packaged if packaged.exists() else REPOSITORY / path


def swagger_ui() -> Path:
    """The folder of Swagger UI's files; a clone uses the distribution that the wheel copies them from."""
    packaged = _PACKAGED / "swagger-ui"
    if packaged.exists():
        return packaged
    return Path(str(distribution("drf-spectacular-sidecar").locate_file(_SWAGGER_UI)))

"""Build hook: adds the files outside the package that `mats serve` needs to the wheel, below `mats/_resources/`."""

from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_RESOURCES = ("console", "examples", "requirements/model.txt", "requirements/multilingual.txt")
_SWAGGER_UI = "drf_spectacular_sidecar/static/drf_spectacular_sidecar/swagger-ui-dist"
_SWAGGER_UI_FILES = ("LICENSE", "swagger-ui-bundle.js", "swagger-ui-bundle.js.LICENSE.txt", "swagger-ui.css")


class BuildHook(BuildHookInterface[Any]):
    """An editable install reads the same files from the clone; `mats/resources.py` finds them in both cases."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        included = {str(root / path): path for path in _RESOURCES}
        swagger_ui = Path(str(distribution("drf-spectacular-sidecar").locate_file(_SWAGGER_UI)))
        included |= {str(swagger_ui / name): f"swagger-ui/{name}" for name in _SWAGGER_UI_FILES}
        build_data["force_include"] |= {source: f"mats/_resources/{path}" for source, path in included.items()}

"""Size of a layer of wheels and of its largest packages: `make vendor`."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.fresh import write_results


def main(layers: Sequence[str]) -> None:
    """Measure built layers, by their folders; print and write the results."""
    results = {Path(layer).name: layer_sizes(Path(layer) / "python") for layer in layers}
    sys.stdout.write(f"{json.dumps(results, indent=1)}\n")
    write_results("vendor-layer", {"layers": results})


def layer_sizes(packages: Path) -> dict[str, Any]:
    """Sizes in megabytes (10^6 bytes, unzipped, as Lambda counts): total, by suffix, of the largest packages."""
    by_package: Counter[str] = Counter()
    by_suffix: Counter[str] = Counter()
    for file in packages.rglob("*"):
        if file.is_file():
            size = file.stat().st_size
            by_package[file.relative_to(packages).parts[0]] += size
            by_suffix[file.suffix or file.name] += size
    return {
        "unzipped_mb": _mb(by_package.total()),
        "compiled_mb": _mb(by_suffix[".pyc"]),
        "binaries_mb": _mb(by_suffix[".so"]),
        "packages": sum(1 for name in by_package if name.endswith(".dist-info")),
        "biggest_mb": {name: _mb(size) for name, size in by_package.most_common(10)},
    }


def _mb(size: int) -> float:
    return round(size / 1e6, 2)


if __name__ == "__main__":
    main(sys.argv[1:])

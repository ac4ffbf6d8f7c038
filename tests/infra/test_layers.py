import ast
import hashlib
import importlib.util
import json
import platform
import subprocess
from pathlib import Path

import pytest

from experiments.benchmarks import layer_size
from infra import vendor
from infra.vendor import JWT, ROOT, VENDOR, CannotBuild, Wheels
from tests.aws.core_layer import copy_core_layer
from tests.conftest import skip_or_fail

_AARCH64 = 183  # `e_machine` of an ELF file for 64-bit ARM
_UNCHECKED = 0b01
_ADAPTERS = ROOT / "layers" / "core" / "python" / "mats" / "adapters"


def _built(wheels: Wheels, folder: Path, interpreter: Path | None, **kwargs: str) -> Path:
    try:
        return wheels.build(folder, interpreter, **kwargs)
    except CannotBuild as error:
        skip_or_fail(f"way to build the layers ({error})")
        raise


@pytest.fixture(scope="module")
def python() -> Path:
    found = vendor.interpreter()
    if not found:
        skip_or_fail(f"Python {vendor.PYTHON}")
    assert found
    return found


@pytest.fixture(scope="module", params=[VENDOR, JWT], ids=lambda wheels: wheels.name)
def wheels(request) -> Wheels:
    return request.param


@pytest.fixture(scope="module")
def layer(wheels, python, tmp_path_factory) -> Path:
    return _built(wheels, tmp_path_factory.mktemp("layer"), python)


def _here(wheels: Wheels, python: Path, folder: Path) -> Path:
    """The same packages for this machine, since binaries for Lambda's do not run on it."""
    if platform.system() != "Linux":
        skip_or_fail("Linux, whose wheels are those of Lambda")
    return _built(wheels, folder, python, platform=f"{platform.machine()}-manylinux_2_28")


@pytest.fixture(scope="module")
def core(tmp_path_factory) -> Path:
    return copy_core_layer(tmp_path_factory.mktemp("core") / "core")


@pytest.fixture(scope="module")
def vendor_here(python, tmp_path_factory) -> Path:
    return _here(VENDOR, python, tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="module")
def jwt_here(python, tmp_path_factory) -> Path:
    return _here(JWT, python, tmp_path_factory.mktemp("jwt-here"))


def _ran(python: Path, program: str, *folders: Path) -> subprocess.CompletedProcess[str]:
    """A program on an interpreter that sees these folders and the standard library, nothing else."""
    start = f"import sys; sys.path[:0] = {[str(folder) for folder in folders]!r}; sys.dont_write_bytecode = True\n"
    return subprocess.run(
        [str(python), "-I", "-S", "-c", start + program], capture_output=True, text=True, check=False, timeout=120
    )


def _modules(layer: Path) -> list[Path]:
    return [path for path in layer.rglob("*.py") if "-" not in path.parent.name]


@pytest.mark.server
def test_a_layer_is_within_its_limit(layer):
    assert 0 < vendor.size_mb(layer) <= vendor.LIMIT_MB


@pytest.mark.server
def test_every_module_is_compiled_for_the_functions_python_and_never_checked_against_its_source(layer, python):
    magic = _ran(python, "import importlib.util; print(importlib.util.MAGIC_NUMBER.hex())").stdout.strip()
    for module in _modules(layer):
        compiled = module.parent / "__pycache__" / f"{module.stem}.cpython-313.pyc"
        head = compiled.read_bytes()[:16]
        assert head[:4].hex() == magic
        assert int.from_bytes(head[4:8], "little") == _UNCHECKED
        assert head[8:] == importlib.util.source_hash(module.read_bytes()) or magic != importlib.util.MAGIC_NUMBER.hex()


@pytest.mark.server
def test_every_binary_is_for_the_functions_processor(layer):
    binaries = list(layer.rglob("*.so"))
    assert binaries
    for binary in binaries:
        head = binary.read_bytes()[:20]
        assert head[:4] == b"\x7fELF", binary
        assert int.from_bytes(head[18:20], "little") == _AARCH64, binary


@pytest.mark.server
def test_a_second_build_is_the_same_to_the_byte(wheels, layer, python, tmp_path):
    again = _built(wheels, tmp_path, python)
    assert _contents(again) == _contents(layer)


def _contents(layer: Path) -> dict[str, str]:
    files = (path for path in layer.rglob("*") if path.is_file())
    return {str(path.relative_to(layer)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.server
def test_no_scripts_or_tests_are_shipped_but_every_package_says_what_it_is(layer, wheels):
    assert not (layer / "bin").exists()
    assert not list(layer.glob("**/tests"))
    described = {path.name.split("-")[0].replace("_", "-").lower() for path in layer.glob("*.dist-info")}
    assert described == set(_pins(wheels.lock))


@pytest.mark.server
@pytest.mark.parametrize(
    ("function", "packages"),
    [("discovery", "vendor_here"), ("enrichment", "vendor_here"), ("authorizer", "jwt_here")],
)
def test_a_function_imports_with_its_two_layers_and_nothing_else(function, packages, core, python, request):
    folders = (ROOT / "functions" / function, request.getfixturevalue(packages), core)
    ran = _ran(python, "import handler; print(handler.handle.__name__)", *folders)
    assert (ran.returncode, ran.stdout) == (0, "handle\n"), ran.stderr


@pytest.mark.server
def test_the_adapters_import_with_the_two_layers_and_nothing_else(vendor_here, core, python):
    program = "\n".join(f"import mats.adapters.{name}" for name in ("aws", "bedrock.factory", "opensearch.domain"))
    ran = _ran(python, program, vendor_here, core)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.server
def test_every_client_that_the_adapters_make_can_be_made_from_the_layer(vendor_here, python):
    program = f"""
import boto3, json
session = boto3.session.Session(region_name="eu-west-1")
print(json.dumps([session.client(name).meta.service_model.service_name for name in {vendor.SERVICES!r}]))
"""
    ran = _ran(python, program, vendor_here)
    assert ran.returncode == 0, ran.stderr
    assert tuple(json.loads(ran.stdout)) == vendor.SERVICES


def test_the_layer_keeps_the_data_of_exactly_the_services_that_the_adapters_call():
    assert _services_called() == set(vendor.SERVICES)


def _services_called() -> set[str]:
    """What is given to anything called `client` as its first argument, or as `service`, in the adapters and wiring.

    What lists a region's models is for the command line and not for functions.
    """
    found = set()
    for path in set(_ADAPTERS.parent.rglob("*.py")) - {_ADAPTERS / "bedrock" / "catalogue.py"}:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) == "client":
                given = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("service", "service_name"))]
                found |= {a.value for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    return found


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_the_layers_have_the_versions_that_the_tests_run_with(wheels):
    locked = _pins(ROOT / "requirements" / "lock.txt")
    assert {name: version for name, version in _pins(wheels.lock).items() if locked.get(name) != version} == {}


def _pins(lock: Path) -> dict[str, str]:
    lines = (line.split()[0] for line in lock.read_text("utf-8").splitlines() if "==" in line)
    return dict(line.split("==") for line in lines)


def test_a_fingerprint_repeats_and_tells_compiled_from_source(wheels):
    assert wheels.fingerprint(None) == wheels.fingerprint(None)
    assert wheels.fingerprint(None) != wheels.fingerprint(Path("/anywhere/python3.13"))
    assert wheels.fingerprint(Path("/a/python3.13")) == wheels.fingerprint(Path("/b/python3.13"))
    assert VENDOR.fingerprint(None) != JWT.fingerprint(None)


def test_the_size_report_counts_every_file_once(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.py").write_bytes(b"x" * 20_000)
    (tmp_path / "one" / "a.pyc").write_bytes(b"x" * 10_000)
    (tmp_path / "two.so").write_bytes(b"x" * 40_000)
    figures = layer_size.layer_sizes(tmp_path)
    assert figures["unzipped_mb"] == 0.07
    assert (figures["compiled_mb"], figures["binaries_mb"]) == (0.01, 0.04)
    assert figures["biggest_mb"] == {"two.so": 0.04, "one": 0.03}


@pytest.fixture(scope="module")
def staged(tmp_path_factory) -> Path:
    """The assets of a stack with all three layers, as they would be uploaded."""
    cdk = pytest.importorskip("aws_cdk", reason="make setup-infra installs the CDK")
    from infra import layers

    vendor.interpreter() or skip_or_fail(f"Python {vendor.PYTHON}")
    out = tmp_path_factory.mktemp("out")
    app = cdk.App(outdir=str(out))
    stack = cdk.Stack(app, "Layers")
    try:
        layers.core_layer(stack)
        for wheels in (VENDOR, JWT):
            layers.wheels_layer(stack, wheels)
    except Exception as error:
        if "uv could not install" in str(error):
            skip_or_fail("way to build the layers")
        raise
    app.synth()
    return out


@pytest.mark.server
def test_the_stack_builds_the_layers_without_docker(staged, python):
    found = {
        part: path
        for path in staged.glob("asset.*")
        for part in ("mats", "boto3", "jwt")
        if (path / "python" / part).is_dir()
    }
    assert set(found) == {"mats", "boto3", "jwt"}
    assert (found["boto3"] / "python" / "boto3" / "__pycache__").is_dir()


@pytest.mark.server
def test_core_layer_is_our_source_but_what_is_left_out(staged, tmp_path):
    found = next(path for path in staged.glob("asset.*") if (path / "python" / "mats").is_dir())
    copy = copy_core_layer(tmp_path / "core").parent
    wanted = {p.relative_to(copy) for p in copy.rglob("*") if p.is_file()}
    assert {p.relative_to(found) for p in found.rglob("*") if p.is_file()} == wanted


@pytest.mark.server
def test_the_layers_are_for_the_functions_python_and_processor(staged):
    template = json.loads((staged / "Layers.template.json").read_text("utf-8"))
    for resource in template["Resources"].values():
        assert resource["Properties"]["CompatibleRuntimes"] == ["python3.13"]
        assert resource["Properties"]["CompatibleArchitectures"] == ["arm64"]

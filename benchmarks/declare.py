"""How each result, page and picture is made: declared at the top of its module, printed in benchmarks/README.md."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import benchmarks

NOTHING = "nothing"
SKIMAGE = "scikit-image's pictures"
REAL = "real data in $SEUNET_DATA"
MONUSEG = "prepared/monuseg"
PATCHES = "prepared/patches"
SLIDE = "CMU-1-Small-Region.svs"
WHEELS = "wheels"
RUN_OF_UNET = "runs/unet-second-stage"
RUN_OF_NUCLEI = "runs/nuclei-second-stage"
DATA = {
    REAL: "the published archives of MoNuSeg and BCSS with a script `unpack DEST`; default ../shared/data",
    MONUSEG: "`seunet data prepare monuseg downloads prepared/monuseg`",
    PATCHES: "of BCSS: `seunet data prepare folder patches prepared/patches --class-map classes.csv --mpp 0.25`",
    SLIDE: "the freely distributable slide of OpenSlide's test data",
    WHEELS: "environments of several Pythons with the wheel in them, by `make wheels`",
    SKIMAGE: "installed by `make install`",
    RUN_OF_UNET: "`seunet train configs/unet-second-stage.yaml -o runs/unet-second-stage`",
    RUN_OF_NUCLEI: "`seunet train configs/nuclei-second-stage.yaml -o runs/nuclei-second-stage`",
    "runs/seunet, runs/unet": "`seunet train configs/monuseg-cpu.yaml -o runs/seunet`, and `--set model.name=unet`",
    "prepared/cpm17, prepared/tnbc, prepared/consep": "as the top of configs/nuclei-2.yaml has them, CPM17 likewise",
    "runs/trial-…": "short runs of configs/nuclei-2.yaml, as results/trials/nuclei-2/README.md has them",
    "out/held-out": "`seunet evaluate` on held-out images, as the top of benchmarks/measure/model/nuclei.py has it",
    "reports/monuseg-cpu": "`seunet reproduce configs/reproduce-monuseg-cpu.yaml -o reports/monuseg-cpu`",
    "a picture": "of tissue; measured was an image of MoNuSeg and OpenSlide's slide in a TIFF with levels",
    "two networks": "at half the paper's widths, trained to the end and for a short time; those measured were not kept",
}


@dataclass(frozen=True)
class Benchmark:
    """What a module makes, and the command, complete with its arguments, that makes it."""

    module: str
    """Below `benchmarks`; of a package the module that `python -m` runs is left out."""
    writes: tuple[str, ...]
    """Files or folders, from the top of the repository; figures of `write_results` go to the first."""
    minutes: float
    """About, on two cores."""
    arguments: str = ""
    needs: tuple[str, ...] = (NOTHING,)

    def makes(self, path: str) -> bool:
        return any(path == each or path.startswith(f"{each}/") for each in self.writes)

    @property
    def program(self) -> str:
        return f"python -m benchmarks.{self.module}"

    @property
    def command(self) -> str:
        return f"{self.program} {self.arguments}".rstrip()

    def parser(self, description: str | None) -> argparse.ArgumentParser:
        """For the module to add its arguments to."""
        shape = argparse.RawDescriptionHelpFormatter
        return argparse.ArgumentParser(prog=self.program, description=description, formatter_class=shape)


@cache
def declarations() -> dict[str, ModuleType]:
    """Every module that declares what it makes, by the name that `python -m` takes."""
    names = sorted(each.name for each in pkgutil.walk_packages(benchmarks.__path__, "benchmarks."))
    modules = {name.removesuffix(".__main__"): importlib.import_module(name) for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "BENCHMARK")}


def command_for(path: str) -> str:
    """The command that makes a file."""
    made: list[Benchmark] = [module.BENCHMARK for module in declarations().values()]
    return next(each.command for each in made if each.makes(path))

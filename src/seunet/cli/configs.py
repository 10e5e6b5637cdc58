"""`seunet configs …`: the configs that come with the package."""

from __future__ import annotations

from pathlib import Path

import typer

from seunet.errors import InputError, check_known

app = typer.Typer(help="The configs of the package: list them, copy one to change it.", no_args_is_help=True)

NAME = typer.Argument(..., metavar="NAME", help="A name that `seunet configs list` shows.")
DEST = typer.Argument(Path(), readable=False, metavar="DEST", help="A folder or a new file; default: this folder.")
OVERWRITE = typer.Option(False, "--overwrite", help="Replace a file that is there.")


@app.command("list")
def list_configs() -> None:
    """Name and first line of every config; use one by `seunet train NAME` or `seunet reproduce NAME`.

    Example: seunet configs list
    """
    from seunet.settings import shipped_configs

    found = {name: path.read_text(encoding="utf-8").splitlines()[0] for name, path in shipped_configs().items()}
    for name, line in sorted(found.items()):
        print(f"{name:{max(map(len, found))}}  {line.removeprefix('# ')}")


@app.command("copy")
def copy_config(name: str = NAME, dest: Path = DEST, overwrite: bool = OVERWRITE) -> None:
    """Copy a config, to change it.

    Example: seunet configs copy nuclei-fine-tune lab.yaml
    """
    from seunet.settings import shipped_configs
    from seunet.storage.atomic import write_text

    shipped = shipped_configs()
    check_known("config", name, shipped)
    file = dest / shipped[name].name if dest.is_dir() else dest
    if file.exists() and not overwrite:
        raise InputError(f"{file}: is there already; pass --overwrite or another DEST")
    write_text(file, shipped[name].read_text(encoding="utf-8"))
    print(file)

# SPDX-License-Identifier: Apache-2.0
"""python -m xfp: folders for transformers, and its server with this package imported."""
import argparse
import sys
from typing import NoReturn

from . import __version__, hook
from .errors import XfpError


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m xfp",
                                     description="Runs .xfp bundles in Hugging Face transformers.")
    parser.add_argument("--version", action="version", version=f"xfp {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    folder = commands.add_parser("folder", help="write a folder that from_pretrained opens after import xfp")
    folder.add_argument("bundle", metavar="BUNDLE", help="the bundle")
    folder.add_argument("folder", metavar="DIR", help="the folder to create")
    folder.add_argument("--copy", action="store_true", help="copy the bundle instead of linking to it")
    for name, text in (("serve", "transformers serve: an OpenAI-compatible server of a folder"),
                       ("chat", "transformers chat: a conversation with a server")):
        commands.add_parser(name, help=text, add_help=False)
    found, rest = parser.parse_known_args(arguments)
    if found.command != "folder":
        run(found.command, rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    from .folder import has_chat_template, write

    write(found.bundle, found.folder, copy=found.copy)
    if not has_chat_template(found.folder):
        print(f"python -m xfp: warning: {found.folder}: the tokenizer has no chat template, which chat needs",
              file=sys.stderr)


def run(command: str, arguments: list[str]) -> NoReturn:
    """A command of transformers, in this process."""
    hook.need_transformers()
    from transformers.cli.transformers import app

    sys.argv = ["transformers", command, *arguments]
    sys.exit(app())


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except XfpError as error:
        sys.exit(f"python -m xfp: {error}")
    except ImportError as error:  # of transformers, which names the packages that its commands need
        sys.exit(f"python -m xfp: {error}")

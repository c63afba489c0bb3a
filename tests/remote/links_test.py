#!/usr/bin/env python3
"""A federation whose links are slow and cut at random ends as an undisturbed one, to the last bit.

    links_test.py SOTTO [--cuts N] [--seed N]
"""

import argparse
import pathlib
import sys
import tempfile

import federation_test
from bad_links import BadLinks

# Uploads of several pieces, so that links break within them.
HIDDEN = 200_000


class LinkedFederation(federation_test.Federation):
    def __init__(self, sotto, folder, links=None):
        super().__init__(sotto, folder)
        config = folder / "config.toml"
        config.write_text(config.read_text().replace("hidden = [8]", f"hidden = [{HIDDEN}]"))
        self.links = links(self.port) if links else None

    def command(self, who):
        command = super().command(who)
        if self.links and who != "server":
            command[command.index("--server") + 1] = f"127.0.0.1:{self.links.port}"
        return command


def run(sotto, links=None):
    with tempfile.TemporaryDirectory(prefix="sotto-links-") as folder:
        made = LinkedFederation(sotto, pathlib.Path(folder), links)
        try:
            made.run(limit=400)
            return made.outcome(), made.digests(), made.links
        except Exception:
            for log in sorted(pathlib.Path(folder).glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
            raise


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sotto")
    parser.add_argument("--cuts", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    expected, digests, _ = run(options.sotto)
    clients, rounds = federation_test.CLIENTS, federation_test.ROUNDS
    assert len(digests) == clients * rounds, digests
    outcome, same, links = run(options.sotto, lambda port: BadLinks(port, options.seed, options.cuts))
    assert links.cuts >= options.cuts // 2, f"only {links.cuts} connections were cut"
    assert links.cut_within_uploads >= 1, "no connection was cut within an upload"
    assert links.cut_within_broadcasts >= 1, "no connection was cut within a broadcast"
    assert outcome == expected and same == digests, "another result than over good links"
    print(f"{links.cuts} connections cut, {links.cut_within_uploads} of them within uploads and "
          f"{links.cut_within_broadcasts} within broadcasts: as over good links")


if __name__ == "__main__":
    main()

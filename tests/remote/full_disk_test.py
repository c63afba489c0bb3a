#!/usr/bin/env python3
"""Disks that are full, at a home and at the server: one clear line, nothing lost, and on it goes once there is room.

    full_disk_test.py SOTTO [--only home-1|server]

Each disk is a small file system in memory, with a file that leaves so many kilobytes free; it is removed when the process
has given up, or has waited for a while. The end must be that of an undisturbed federation, to the last bit. Needs a mount
namespace of its own: ends with 77 where that is not to be had.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import federation_test

FREE = {"home-1": [0, 40, 100, 160], "server": [0, 60, 140, 180, 240]}  # kilobytes, beside what is there
SIZE = 8192
PATIENCE = 3  # seconds that somebody who complains and does not give up is left alone with a full disk


class SmallDisk:
    """A file system of its own in place of a folder."""

    def __init__(self, folder, free):
        self.folder, kept = folder, folder.with_suffix(".kept")
        folder.mkdir(exist_ok=True)
        shutil.copytree(folder, kept)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}k", "tmpfs", str(folder)], check=True)
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        self.fill = folder / "fill"
        room = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize - free * 1024
        with open(self.fill, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, room)

    def make_room(self):
        self.fill.unlink(missing_ok=True)

    def remove(self):
        subprocess.run(["umount", "-l", str(self.folder)], check=False)


class FullDisk(federation_test.Federation):
    def begin_server(self):
        """A server makes its folder in one step, whole: this one is there, and has seen nobody yet."""
        server = self.start("server")
        end = time.monotonic() + 60
        while not (self.folder / "server" / "server.sqlite").exists() or "listening" not in self.log("server"):
            assert server.poll() is None and time.monotonic() < end, self.log("server")
            time.sleep(0.05)
        server.terminate()
        server.wait()
        (self.folder / "server.log").unlink()

    def log(self, who):
        file = self.folder / f"{who}.log"
        return file.read_text() if file.exists() else ""

    def follow(self, victim, disk):
        who = ["server"] + [f"home-{client}" for client in range(federation_test.CLIENTS)]
        waiting, running, done, said = list(who), {}, set(), ""
        end, room_at = time.monotonic() + 180, None
        try:
            while len(done) < len(who):
                assert time.monotonic() < end, f"not done: {set(who) - done}"
                if waiting and (waiting[0] == "server" or self.joined(who.index(waiting[0]) - 1)):
                    name = waiting.pop(0)
                    running[name] = self.start(name)
                if not said and self.complaint(victim):
                    said, room_at = self.complaint(victim), time.monotonic() + PATIENCE
                if room_at and time.monotonic() > room_at:
                    disk.make_room()
                    room_at = None
                for name, process in list(running.items()):
                    code = process.poll()
                    if code is None:
                        continue
                    del running[name]
                    if code == 0:
                        done.add(name)
                        continue
                    assert name == victim and code == 2, f"{name} ended with {code}: {self.log(name)[-2000:]}"
                    said = self.complaint(victim)
                    assert said, f"{name} does not say why it ended: {self.log(name)[-2000:]}"
                    self.check_one_line(said)
                    disk.make_room()
                    running[name] = self.start(name)
                time.sleep(0.02)
            return said
        finally:
            for process in running.values():
                process.kill()
                process.wait()

    def complaint(self, who):
        lines = [line for line in self.log(who).splitlines() if "is full" in line or "No space left" in line]
        return lines[-1] if lines else ""

    @staticmethod
    def check_one_line(line):
        assert line.startswith("sotto: ") and "unexpected" not in line and len(line) < 400, line


def outcome_of(made, victim, free):
    """The outcome must be looked at before the disk goes."""
    folder = made.folder / victim
    if victim == "server":
        made.begin_server()
    disk = SmallDisk(folder, free)
    try:
        said = made.follow(victim, disk)
        return said, made.outcome()
    except Exception:
        for log in sorted(made.folder.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
        raise
    finally:
        disk.remove()


def in_own_namespace():
    """Runs this program again where mounts are nobody else's business."""
    for how in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        with tempfile.TemporaryDirectory() as folder:
            tried = subprocess.run(how + ["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False)
        if tried.returncode == 0:
            os.environ["SOTTO_OWN_MOUNTS"] = "1"
            os.execvp(how[0], how + [sys.executable] + sys.argv)
    print("no mount namespace is to be had: skipped")
    sys.exit(77)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sotto")
    parser.add_argument("--only", choices=list(FREE))
    options = parser.parse_args()
    if "SOTTO_OWN_MOUNTS" not in os.environ:
        in_own_namespace()

    def fresh(act):
        with tempfile.TemporaryDirectory(prefix="sotto-disk-") as folder:
            return act(FullDisk(options.sotto, pathlib.Path(folder)))

    def undisturbed(made):
        made.run()
        return made.outcome()

    expected = fresh(undisturbed)
    for victim, sizes in FREE.items():
        if options.only and victim != options.only:
            continue
        complaints = 0
        for free in sizes:
            said, outcome = fresh(lambda made: outcome_of(made, victim, free))
            assert outcome == expected, f"{victim} with {free} kB free: {outcome} instead of {expected}"
            complaints += bool(said)
            print(f"{victim}, {free} kB free: {said or 'room enough'}", flush=True)
        assert complaints >= 3, f"the disk of {victim} was hardly ever full"


if __name__ == "__main__":
    main()

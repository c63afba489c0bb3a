#!/usr/bin/env python3
"""The example of four hospitals, each in a network of its own with one cable to the server, and one cable is pulled.

    namespaces_test.py SOTTO EXAMPLE_FOLDER

A server in one network namespace and four hospitals in theirs, over TLS, through a bridge that lets hospitals reach the
server and not each other. The cable of one is pulled for some seconds in the middle. All must end well, with verified
ledgers. Ends with 77 where network namespaces are not to be had.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PLACES = ["cleveland", "hungarian", "switzerland", "va"]
SERVER = "10.77.0.1"


def call(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def in_own_network():
    for how in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        tried = subprocess.run(how + ["ip", "link", "add", "try", "type", "veth"], capture_output=True, check=False)
        if tried.returncode == 0:
            os.environ["SOTTO_OWN_NETWORK"] = "1"
            os.execvp(how[0], how + [sys.executable] + sys.argv)
    print("no network namespace is to be had: skipped")
    sys.exit(77)


class Hospital:
    """A network with one cable, which is there as long as a process that sleeps in it."""

    def __init__(self, number):
        self.number, self.cable = number, f"cable{number}"
        self.sleeper = subprocess.Popen(["unshare", "--net", "sleep", "600"])
        while os.readlink(f"/proc/{self.sleeper.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.02)
        call("ip", "link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.sleeper.pid)
        call("ip", "link", "set", self.cable, "master", "switch")
        # Hospitals do not see each other.
        call("ip", "link", "set", self.cable, "type", "bridge_slave", "isolated", "on")
        call("ip", "link", "set", self.cable, "up")
        call(*self.inside("ip", "addr", "add", f"10.77.0.{1 + number}/24", "dev", "eth0"))
        call(*self.inside("ip", "link", "set", "eth0", "up"))

    def inside(self, *command):
        return ["nsenter", "--target", str(self.sleeper.pid), "--net"] + [str(part) for part in command]

    def reaches(self, address, port):
        attempt = f"import socket; socket.create_connection(('{address}', {port}), 1)"
        return subprocess.run(self.inside(sys.executable, "-c", attempt), capture_output=True, check=False).returncode == 0

    def end(self):
        self.sleeper.kill()
        self.sleeper.wait()


def main():
    sotto, example = sys.argv[1], pathlib.Path(sys.argv[2])
    if "SOTTO_OWN_NETWORK" not in os.environ:
        in_own_network()
    if subprocess.run([sotto, "data", "show", "heart-disease"], capture_output=True, check=False).returncode != 0:
        print("heart-disease is not installed: skipped")
        sys.exit(77)
    call("ip", "link", "set", "lo", "up")
    call("ip", "link", "add", "switch", "type", "bridge")
    call("ip", "addr", "add", f"{SERVER}/24", "dev", "switch")
    call("ip", "link", "set", "switch", "up")
    hospitals = [Hospital(number + 1) for number in range(len(PLACES))]
    with tempfile.TemporaryDirectory(prefix="sotto-hospitals-") as folder:
        try:
            run(sotto, example, pathlib.Path(folder), hospitals)
        finally:
            for hospital in hospitals:
                hospital.end()


def run(sotto, example, folder, hospitals):
    quiet = {"stdout": subprocess.DEVNULL}
    call(sotto, "certs", "init", folder / "certs", "--name", "hospitals", "--host", SERVER, **quiet)
    log = open(folder / "server.log", "w+")
    server = subprocess.Popen([sotto, "serve", str(example / "federation.toml"), "--folder", str(folder / "server"), "--certs",
                               str(folder / "certs"), "--listen", f"{SERVER}:0", "--linger", "60"], stdout=log, stderr=log)
    processes = [server]
    try:
        end = time.monotonic() + 60
        while not (port := re.search(r"listening on port (\d+)", (folder / "server.log").read_text())):
            assert server.poll() is None and time.monotonic() < end, (folder / "server.log").read_text()
            time.sleep(0.05)
        address = f"{SERVER}:{port[1]}"
        for hospital, place in zip(hospitals, PLACES):
            name = f"hospital-{hospital.number}"
            home = folder / name
            home.mkdir()
            policy = (example / "policy.toml").read_text()
            for what, value in (("PLACE", place), ("HOSPITAL", name), ("localhost:PORT", address)):
                policy = policy.replace(what, value)
            (home / "policy.toml").write_text(policy)
            call(sotto, "enrol", home, "--name", name, "--request", home / "request.csr", **quiet)
            call(sotto, "certs", "issue", folder / "certs", home / "request.csr", "--name", name, "--out", home / "issued.pem",
                 **quiet)
            call(sotto, "enrol", home, "--certificate", home / "issued.pem", "--authority", folder / "certs/authority.pem",
                 **quiet)
        assert hospitals[0].reaches(SERVER, port[1]), "a hospital does not reach the server"
        call(*hospitals[1].inside("ip", "link", "set", "lo", "up"))
        neighbour = subprocess.Popen(hospitals[1].inside(sys.executable, "-m", "http.server", "8080"),
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        processes.append(neighbour)
        while not hospitals[1].reaches("127.0.0.1", 8080):
            time.sleep(0.1)
        assert not hospitals[0].reaches("10.77.0.3", 8080), "hospitals reach each other"
        neighbour.kill()
        logs, members = [], []
        for hospital in hospitals:
            logs.append(open(folder / f"hospital-{hospital.number}.log", "w+"))
            command = hospital.inside(sotto, "join", folder / f"hospital-{hospital.number}", "--yes")
            members.append(subprocess.Popen(command, stdout=logs[-1], stderr=logs[-1]))
            processes.append(members[-1])
        # In the middle of the rounds, for longer than a retry takes.
        while "round 1 of" not in (log := (folder / "server.log").read_text()):
            assert server.poll() is None and time.monotonic() < end + 60, log
            time.sleep(0.01)
        call("ip", "link", "set", hospitals[1].cable, "down")
        time.sleep(3)
        call("ip", "link", "set", hospitals[1].cable, "up")
        for process in members + [server]:
            assert process.wait(timeout=400) == 0, "\n".join(file.read_text()[-1500:] for file in folder.glob("*.log"))
        for name in ["server"] + [f"hospital-{hospital.number}" for hospital in hospitals]:
            call(sotto, "ledger", "verify", folder / name, **quiet)
        finals = {file.read_bytes() for file in folder.glob("hospital-*/federations/*/final.safetensors")}
        assert len(finals) == 1, "hospitals have ended with different models"
        print("four hospitals in networks of their own, one cable pulled for three seconds: all ended well")
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()

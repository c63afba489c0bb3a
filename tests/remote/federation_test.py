#!/usr/bin/env python3
"""Federations of processes on the loopback interface that are killed at every durable step.

    federation_test.py SOTTO [--random N]

Each federation has replayed noise and the same reporters, so that it must end with the model and the ledgers of an
undisturbed one, to the last bit, whoever was killed and when; and nobody may ever offer two different uploads for one round.
"""

import argparse
import hashlib
import os
import pathlib
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

CLIENTS = 2
ROUNDS = 3
MEMBER_POINTS = ["member.joined", "member.worked", "member.upload-written", "member.state-written", "member.sealed",
                 "member.sending", "member.sent", "member.settled", "member.left"]
SERVER_POINTS = ["serve.joined", "serve.opened", "serve.published", "serve.received", "serve.stored", "serve.frozen",
                 "serve.folded", "serve.checkpointed", "serve.closed"]
TRUSTED_POINTS = ["serve.frozen", "serve.folded", "serve.checkpointed"]
EVERYONE = -1  # whose release it is that concerns all clients

CONFIG = """
rounds = {rounds}
seed = 5
[data]
clients = {clients}
test_fraction = 0.25
[data.schema]
columns = [
  {{name = "x", kind = "number", range = [-3, 3]}},
  {{name = "y", kind = "number", range = [-3, 3]}},
  {{name = "label", kind = "label", values = ["no", "yes"]}},
]
[model]
name = "mlp"
hidden = [8]
personal = ["head."]
[federation]
batch = 20
lr = 0.2
[method]
name = "ldp-fedavg"
[privacy]
epsilon = 4.0
delta = 1e-4
adjacency = "zero-out"
[declared]
records = 60
least_records = 50
[serve]
quorum = {clients}
deadline = 100
"""

# The server is trusted: it gets what clients have bounded, and makes the one release of a round. Secure noise cannot be
# drawn twice, so that models differ from run to run, and ledgers must not.
CENTRAL = {
    "config": [('name = "ldp-fedavg"', 'name = "dp-fedavg"'), ('personal = ["head."]\n', ""),
               ('adjacency = "zero-out"', 'adjacency = "zero-out"\nunit = "client"\nobserver = "clients"\nnoise = "secure"')],
    "policy": [('methods = ["ldp-fedavg"]', 'methods = ["dp-fedavg"]\ntrust = ["central"]'), ('noise = "replay"\n', ""),
               ('adjacency = "zero-out"', 'adjacency = "zero-out"\nunit = "client"\nobserver = "clients"')],
}

POLICY = """
[data]
name = "custom"
path = "records.csv"
[budget]
epsilon = 4.0
delta = 1e-4
adjacency = "zero-out"
[allow]
methods = ["ldp-fedavg"]
declare = ["records"]
noise = "replay"
[server]
name = "{name}"
"""


def changed(text, changes):
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Federation:
    """One server and its clients; whoever dies is started again."""

    def __init__(self, sotto, folder, central=False):
        self.sotto, self.folder, self.port = sotto, folder, free_port()
        config, policy = (changed(CONFIG, CENTRAL["config"]), changed(POLICY, CENTRAL["policy"])) if central else (CONFIG, POLICY)
        (folder / "config.toml").write_text(config.format(rounds=ROUNDS, clients=CLIENTS))
        for client in range(CLIENTS):
            home = folder / f"home-{client}"
            home.mkdir()
            (home / "policy.toml").write_text(policy.format(name=f"home-{client}"))
            draw = random.Random(client)
            rows = [(draw.gauss(label, 1), draw.gauss(-label, 1), "yes" if label else "no")
                    for label in (0, 1) for _ in range(40)]
            (home / "records.csv").write_text("x,y,label\n" + "".join(f"{x:.6f},{y:.6f},{l}\n" for x, y, l in rows))

    def command(self, who):
        address = f"127.0.0.1:{self.port}"
        if who == "server":
            return [self.sotto, "serve", str(self.folder / "config.toml"), "--folder", str(self.folder / "server"),
                    "--insecure", "--listen", address, "--linger", "20"]
        return [self.sotto, "join", str(self.folder / who), "--insecure", "--yes", "--server", address]

    def start(self, who, kill_at=None):
        environment = dict(os.environ)
        environment.pop("SOTTO_KILL_AT", None)
        if kill_at:
            environment["SOTTO_KILL_AT"] = kill_at
        log = open(self.folder / f"{who}.log", "a")
        return subprocess.Popen(self.command(who), env=environment, stdout=log, stderr=log)

    def run(self, victim=None, kill_at=None, random_kills=None, limit=240):
        """How often somebody was killed. Clients come one after the other, so that they always get the same places."""
        who = ["server"] + [f"home-{client}" for client in range(CLIENTS)]
        running, killed, end = {}, 0, time.monotonic() + limit
        first = {name: (kill_at if name == victim else None) for name in who}
        waiting = list(who)
        kills_left = 4 if random_kills else 0  # so that it ends, however slow the machine
        next_kill = time.monotonic() + (random_kills.uniform(0.3, 3) if random_kills else 0)
        done = set()
        try:
            while len(done) < len(who):
                if time.monotonic() > end:
                    raise AssertionError(f"not done in {limit} s: {set(who) - done}")
                if waiting and (waiting[0] == "server" or self.joined(who.index(waiting[0]) - 1)):
                    name = waiting.pop(0)
                    running[name] = self.start(name, first[name])
                for name, process in list(running.items()):
                    code = process.poll()
                    if code is None:
                        continue
                    del running[name]
                    if code == 0:
                        done.add(name)
                    elif code == -signal.SIGKILL:
                        killed += 1
                        if self.has_reported(name):
                            done.add(name)
                        else:
                            running[name] = self.start(name)
                    else:
                        raise AssertionError(f"{name} ended with {code}")
                if kills_left > 0 and time.monotonic() > next_kill and running:
                    random_kills.choice(list(running.values())).send_signal(signal.SIGKILL)
                    kills_left -= 1
                    next_kill = time.monotonic() + random_kills.uniform(0.3, 3)
                time.sleep(0.02)
        finally:
            for process in running.values():
                process.kill()
                process.wait()
        return killed

    def has_reported(self, name):
        """Killed on its way out, with nothing left to do."""
        kept = self.folder / name / "federations"
        return any(kept.glob("*/final.safetensors")) and not any(kept.glob("*/unreported.json"))

    def joined(self, count):
        file = self.folder / "server" / "server.sqlite"
        if not file.exists():
            return False
        try:
            with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
                return database.execute("SELECT COUNT(*) FROM members").fetchone()[0] >= count
        except sqlite3.Error:
            return False

    def rows(self, ledger):
        with sqlite3.connect(f"file:{self.folder / ledger}?mode=ro", uri=True) as database:
            return database.execute("SELECT round, client, observer, what, attempt, noise, sensitivity, steps, generator, run "
                                    "FROM releases ORDER BY run, round, client, what").fetchall()

    def outcome(self):
        """All that must not depend on who was killed."""
        final = {name: hashlib.sha256(file.read_bytes()).hexdigest()
                 for name in (f"home-{client}" for client in range(CLIENTS))
                 for file in (self.folder / name / "federations").glob("*/final.safetensors")}
        states = {file.parent.parent.name: hashlib.sha256(file.read_bytes()).hexdigest()
                  for file in self.folder.glob("home-*/states/*.safetensors")}
        ledgers = {name: self.rows(f"{name}/ledger.sqlite")
                   for name in ["server"] + [f"home-{client}" for client in range(CLIENTS)]}
        for name in ledgers:
            subprocess.run([self.sotto, "ledger", "verify", str(self.folder / name)], check=True, stdout=subprocess.DEVNULL)
        logs = "".join(file.read_text() for file in self.folder.glob("*.log"))
        if "offers another upload" in logs:
            raise AssertionError("somebody offered two different uploads for one round")
        return final, states, ledgers


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sotto")
    parser.add_argument("--random", type=int, default=0, help="also so many federations with random kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only points whose name contains this")
    options = parser.parse_args()

    def federation(central=False, **how):
        with tempfile.TemporaryDirectory(prefix="sotto-federation-") as folder:
            made = Federation(options.sotto, pathlib.Path(folder), central)
            try:
                killed = made.run(**how)
                return killed, made.outcome()
            except Exception:
                for log in sorted(pathlib.Path(folder).glob("*.log")):
                    print(f"--- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
                raise

    begin = time.monotonic()
    _, expected = federation()
    assert len(expected[0]) == CLIENTS and len(set(expected[0].values())) == 1, expected
    assert [len(rows) for rows in expected[2].values()] == [CLIENTS * ROUNDS] + [ROUNDS] * CLIENTS, expected
    print(f"undisturbed: {time.monotonic() - begin:.1f} s")
    cases = [("home-1", point) for point in MEMBER_POINTS] + [("server", point) for point in SERVER_POINTS]
    for victim, point in cases:
        if options.only not in point:
            continue
        visit = 1 if point.endswith(("joined", "left")) else 2
        killed, outcome = federation(victim=victim, kill_at=f"{point}:{visit}")
        assert killed >= 1, f"{point} was never reached"
        assert outcome == expected, f"{point}: {outcome} instead of {expected}"
        print(f"killed at {point}: as undisturbed")
    trusted = [point for point in TRUSTED_POINTS if options.only in point]
    if trusted:
        _, (_, _, ledgers) = federation(central=True)
        assert sum(row[1] == EVERYONE for row in ledgers["server"]) == ROUNDS, ledgers["server"]
    for point in trusted:
        killed, outcome = federation(central=True, victim="server", kill_at=f"{point}:2")
        assert killed >= 1, f"{point} was never reached"
        assert outcome[2] == ledgers, f"{point}: {outcome[2]} instead of {ledgers}"
        print(f"trusted server killed at {point}: every release is paid for once")
    draw, kills = random.Random(options.seed), 0
    while kills < options.random:
        killed, outcome = federation(random_kills=draw, limit=240)
        assert outcome == expected, f"random kills: {outcome} instead of {expected}"
        kills += killed
        print(f"{kills} random kills: as undisturbed", flush=True)
    print(f"all in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Federations of processes on the loopback interface that are killed at every durable step.

    federation_test.py SOTTO [--random N] [--only POINT]

With replayed noise and the same reporters a federation must end with the model and the ledgers of an undisturbed one, to
the last bit, whoever was killed and when. With secure noise whoever draws again has other bytes: the server's list of
offers must be what the homes have sealed, one digest a client and round, and every release must be paid for once.
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
# Where a process is killed, and which time that it is there; its next process is killed at the next point. Most are in the
# second round, where there is a first one to go on from.
MEMBER_POINTS = ["member.joined:1", "member.worked:2", "member.upload-written:1", "member.state-written:1",
                 "member.sealed:1", "member.sending:1", "member.sent:1", "member.settled:1", "member.final-kept:1",
                 "member.left:1", "member.reported:1"]
SERVER_POINTS = ["serve.joined:1", "serve.opened:2", "serve.published:1", "serve.offered:1", "serve.received:1",
                 "serve.stored:1", "serve.frozen:1", "serve.folded:1", "serve.checkpointed:1", "serve.closed:1",
                 "serve.summarised:1"]
EVALUATION_POINTS = ["serve.evaluated:1", "serve.evaluation-written:1", "serve.closed:1"]
TRUSTED_POINTS = ["serve.frozen:2", "serve.folded:1", "serve.checkpointed:1"]
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

# Noise that cannot be drawn twice; and clients are asked how good the model is, which is one release more.
SECURE = {
    "config": [('adjacency = "zero-out"', 'adjacency = "zero-out"\nnoise = "secure"'), ('personal = ["head."]\n', ""),
               ("[serve]\n", '[serve]\nevaluation = "released"\n'), ("records = 60\n", "records = 60\ntest_records = 15\n")],
    "policy": [('noise = "replay"\n', 'evaluation = "released"\n')],
}
# The server is trusted: it gets what clients have bounded, and makes the one release of a round.
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

    def __init__(self, sotto, folder, kind=None):
        self.sotto, self.folder, self.port = sotto, folder, free_port()
        config, policy = (changed(CONFIG, kind["config"]), changed(POLICY, kind["policy"])) if kind else (CONFIG, POLICY)
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

    def run(self, victim=None, kill_at=(), random_kills=None, limit=240):
        """How often somebody was killed. Clients come one after the other, so that they always get the same places."""
        who = ["server"] + [f"home-{client}" for client in range(CLIENTS)]
        running, killed, end = {}, 0, time.monotonic() + limit
        ahead = {name: (list(kill_at) if name == victim else []) for name in who}
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
                    running[name] = self.start(name, ahead[name].pop(0) if ahead[name] else None)
                for name, process in list(running.items()):
                    code = process.poll()
                    if code is None:
                        continue
                    del running[name]
                    if code == 0:
                        done.add(name)
                    elif code == -signal.SIGKILL:
                        killed += 1
                        if self.has_reported(name) and not ahead[name]:
                            done.add(name)
                        else:
                            running[name] = self.start(name, ahead[name].pop(0) if ahead[name] else None)
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

    def digests(self):
        """What each home has sealed, which must be what was ever offered to the server, and what it has."""
        with sqlite3.connect(f"file:{self.folder / 'server/server.sqlite'}?mode=ro", uri=True) as database:
            offered, here = (sorted(database.execute(f"SELECT members.name, round, digest FROM {table} JOIN members USING (client)"))
                             for table in ("offers", "uploads"))
        sealed = []
        for name in (f"home-{client}" for client in range(CLIENTS)):
            with sqlite3.connect(f"file:{self.folder / name / 'ledger.sqlite'}?mode=ro", uri=True) as database:
                for key, digest in database.execute("SELECT key, value FROM meta WHERE key LIKE 'sealed %'"):
                    sealed.append((name, int(key.split()[-1]), digest))
        assert offered == here == sorted(sealed), f"{offered} was offered, {here} came in, and {sealed} was sealed"
        return here

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
        self.digests()
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

    def federation(kind=None, **how):
        with tempfile.TemporaryDirectory(prefix="sotto-federation-") as folder:
            made = Federation(options.sotto, pathlib.Path(folder), kind)
            try:
                killed = made.run(**how)
                assert killed >= len(how.get("kill_at", ())), f"{killed} of {how} was reached"
                return killed, made.outcome()
            except BaseException:
                for log in sorted(pathlib.Path(folder).glob("*.log")):
                    print(f"--- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
                raise

    def chains(points):
        """All in one federation; those that are asked for by name in one each."""
        return [[point] for point in points if options.only in point] if options.only else [points]

    def paid_once(ledgers, rounds=ROUNDS):
        return [len(rows) for rows in ledgers.values()] == [CLIENTS * rounds] + [rounds] * CLIENTS

    begin = time.monotonic()

    def report(what):
        print(f"{time.monotonic() - begin:5.1f} s  {what}", flush=True)

    _, expected = federation()
    assert len(expected[0]) == CLIENTS and len(set(expected[0].values())) == 1, expected
    assert paid_once(expected[2]), expected
    report("undisturbed")
    for victim, points in [("home-1", MEMBER_POINTS), ("server", SERVER_POINTS)]:
        for chain in chains(points):
            _, outcome = federation(victim=victim, kill_at=chain)
            assert outcome == expected, f"{chain}: {outcome} instead of {expected}"
            report(f"killed at {', '.join(chain)}: as undisturbed")
    for victim, points in [("home-1", MEMBER_POINTS), ("server", EVALUATION_POINTS)]:
        for chain in chains(points):
            _, (_, _, ledgers) = federation(SECURE, victim=victim, kill_at=chain)
            assert paid_once(ledgers, ROUNDS + 1), f"{chain}: {ledgers}"
            report(f"noise that cannot be drawn twice, killed at {', '.join(chain)}: one digest a round, paid for once")
    if chains(TRUSTED_POINTS + MEMBER_POINTS):
        _, (_, _, ledgers) = federation(CENTRAL)
        assert sum(row[1] == EVERYONE for row in ledgers["server"]) == ROUNDS, ledgers["server"]
    for victim, points in [("server", TRUSTED_POINTS), ("home-1", MEMBER_POINTS)]:
        for chain in chains(points):
            _, outcome = federation(CENTRAL, victim=victim, kill_at=chain)
            assert outcome[2] == ledgers, f"{chain}: {outcome[2]} instead of {ledgers}"
            report(f"a trusted server, killed at {', '.join(chain)}: every release is paid for once")
    draw, kills = random.Random(options.seed), 0
    while kills < options.random:
        killed, outcome = federation(random_kills=draw, limit=240)
        assert outcome == expected, f"random kills: {outcome} instead of {expected}"
        kills += killed
        report(f"{kills} random kills: as undisturbed")


if __name__ == "__main__":
    main()

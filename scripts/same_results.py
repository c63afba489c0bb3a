#!/usr/bin/env python3
"""Runs small federations of every method with two builds of Sotto and compares them to the last bit.

Usage: scripts/same_results.py record PROGRAM FOLDER      runs every case with PROGRAM
       scripts/same_results.py compare FOLDER FOLDER      exit code 1 and a line per case that differs

What is compared: metrics and summaries without times and config hashes, checkpoints, recorded uploads, ledger rows without times and links.
Both must be recorded on the same machine: sums of floats depend on the processor.
"""
import hashlib
import json
import os
import random
import sqlite3
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RECORD = '[privacy]\nepsilon = 8\ndelta = 1e-3\nadjacency = "{adjacency}"\n'
CLIENT = 'unit = "client"\nobserver = "clients"\n'
DPSGD = ["ldp-fedavg", "pac-dp", "fixed", "cgm-median", "aqc", "rpdp-fl", "ladp-fl", "full-dp",
         "time-varying-dp", "sensitive-dp-style", "dpa-ldp", "adap-ldp"]
PRINTED = ["ldp-fedavg", "pac-dp", "fixed", "cgm-median", "aqc", "rpdp-fl", "full-dp", "ladp-fl", "time-varying-dp", "dpa-ldp", "adap-ldp"]
PERSONAL = ["mr-mtl", "ditto", "apfl", "fedper", "fedrep"]
PROTOTYPES = ["fedproto", "fedpcl", "fpl", "fedplvm", "fedtgp", "mpft"]
PROMPTS = ["dp-fpl", "promptfl", "fedotp", "fedpgp"]
LINEAR = {"model": '{ name = "linear" }'}
NEEDED = {"pac-dp": ['curve="paper-mnist"'], **{name: ['encoder="tiny"'] for name in PROMPTS}}


def write_records(path):
    """Three Gaussian blobs in six dimensions and two domains, as a feature file."""
    draw = random.Random(1)
    tensors = {}
    for prefix, count in (("", 240), ("test_", 90)):
        labels = [i % 3 for i in range(count)]
        x = [draw.gauss(0, 1) + (3 if j == label else 0) for label in labels for j in range(6)]
        tensors[prefix + "x"] = ("F32", [count, 6], struct.pack(f"<{len(x)}f", *x))
        tensors[prefix + "y"] = ("I64", [count], struct.pack(f"<{count}q", *labels))
        tensors[prefix + "domain"] = ("I64", [count], struct.pack(f"<{count}q", *[i % 2 for i in range(count)]))
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def cases():
    """(name, method, variant, privacy or "", options of [method], other settings)"""
    zero_out, replace = RECORD.format(adjacency="zero-out"), RECORD.format(adjacency="replace")
    add_remove = RECORD.format(adjacency="add-remove")
    same_label = RECORD.format(adjacency="replace-same-label")
    yield "fedavg", "fedavg", "sound", "", [], {}
    yield "fedavg-personal", "fedavg", "sound", "", [], {"model.personal": '["head."]'}
    yield "fedavg-adam", "fedavg", "sound", "", [], {"federation.optimizer": '"adam"', "federation.lr": "0.01"}
    yield "fedprox", "fedprox", "sound", "", [], {}
    yield "local-only", "local-only", "sound", "", [], {}
    yield "dp-fedavg", "dp-fedavg", "sound", add_remove + CLIENT, [], {}
    yield "dp-fedavg-adaptive", "dp-fedavg", "sound", replace + CLIENT, ['clipping="adaptive"'], {}
    yield "dp-fedavg-poisson", "dp-fedavg", "sound", add_remove + CLIENT, [], {"federation.sampling": '"poisson"'}
    yield "nbafl", "nbafl", "sound", replace, [], {}
    yield "nbafl-paper", "nbafl", "paper", replace, [], {}
    for method in DPSGD:
        yield method, method, "sound", zero_out, [], {}
        yield method + "-replace", method, "sound", replace, [], {"federation.local_epochs": "2"}
    yield "ldp-poisson", "ldp-fedavg", "sound", zero_out, ['batches="poisson"'], {}
    yield "ldp-adaptive", "ldp-fedavg", "sound", replace, ['clipping="adaptive"', 'weights="noise"'], {}
    yield "ldp-personal", "ldp-fedavg", "sound", replace, [], {"model.personal": '["head."]'}
    yield "ldp-budgets", "ldp-fedavg", "sound", replace + "budgets = [1, 2, 8]\n", [], {}
    for method in PRINTED:
        yield method + "-paper", method, "paper", replace, [], {}
    for method in PERSONAL:
        yield method, method, "sound", zero_out, [], {}
    for method in ("mr-mtl", "ditto", "apfl"):
        yield method + "-normalised", method, "sound", replace, ['descent="normalised"'], {}
    yield "dp-head", "dp-head", "sound", zero_out, [], LINEAR
    yield "dp-head-allocated", "dp-head", "sound", replace, ['steps="allocated"'], LINEAR
    yield "dp-prototypes", "dp-prototypes", "sound", zero_out, [], LINEAR
    yield "ladp-fl-probe", "ladp-fl", "sound", replace, ['bounds="probe"', 'clipping="layers"'], {}
    for method in PROTOTYPES:
        yield method, method, "sound", zero_out, [], {}
        yield method + "-replace", method, "sound", replace, [], {}
        yield method + "-clear", method, "sound", "", ['mechanism="none"'], {}
        yield method + "-vpp-dcr", method, "sound", same_label, ['mechanism="vpp"', "dcr=true"], {}
        yield method + "-paper", method, "paper", same_label, ['mechanism="igpp"'], {}
        yield method + "-paper-vpp", method, "paper", same_label, ['mechanism="vpp"', "dcr=true"], {}
    yield "fedproto-centre", "fedproto", "sound", replace, ["centre=true", 'release="once"'], {}
    yield "fedproto-dpsgd", "fedproto", "sound", replace, ['encoder="dp-sgd"'], {}
    yield "fedproto-oracle", "fedproto", "sound", replace, ['mechanism="vpp"', 'selection="oracle"'], {}
    yield "fedproto-once", "fedproto", "sound", replace, ['mechanism="vpp"', 'selection="once"', 'weighting="best"'], {}
    yield "mpft-heads", "mpft", "sound", replace, ['heads="four"'], {}
    for method in PROMPTS:
        yield method, method, "sound", zero_out, [], {}
        yield method + "-replace", method, "sound", replace, ['clip_at="prompt"'], {}
        yield method + "-trusted", method, "sound", replace + 'observer="clients"\n', ['clip_at="prompt"'], {}
        yield method + "-paper", method, "paper", replace, [], {}
        yield method + "-clear", method, "sound", "", [], {}
    yield "dp-fpl-poisson", "dp-fpl", "sound", zero_out, ['batches="poisson"'], {}


def config_of(case, records):
    _, method, variant, privacy, options, other = case
    text = f'rounds = 3\n[data]\nname = "custom"\npath = "{records}"\nclasses = 3\nclients = 6\npartition = "dirichlet"\nalpha = 1.0\n'
    text += '[model]\nname = "mlp"\nhidden = [8]\n[federation]\ncohort = 4\nbatch = 8\nlr = 0.1\n[record]\nuploads = true\n'
    if method == "dp-head":
        text = text.replace("lr = 0.1\n", "")  # its step follows from the noise
    text += privacy + f'[method]\nname = "{method}"\nvariant = "{variant}"\n'
    text += "\n".join(NEEDED.get(method, []) + options) + "\n"
    return text, [f"{key}={value}" for key, value in other.items()]


def record(program, folder):
    folder.mkdir(parents=True)
    records = Path(os.environ.get("TMPDIR", "/tmp")) / "sotto-same-results.safetensors"
    write_records(records)

    def run(case):
        text, overrides = config_of(case, records)
        config = folder / (case[0] + ".toml")
        config.write_text(text)
        command = [program, "run", str(config), "--out", str(folder / case[0]), "--threads", "2", "--quiet"]
        for override in overrides:
            command += ["--set", override]
        done = subprocess.run(command, capture_output=True, text=True)
        (folder / (case[0] + ".exit")).write_text(f"{done.returncode}\n{done.stderr}")
        return case[0], done.returncode

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(run, cases()))
    failed = [name for name, code in results if code != 0]
    print(f"{len(results)} cases, {len(failed)} refused or failed: {' '.join(failed)}")


def without(value, keys):
    if isinstance(value, dict):
        return {key: without(item, keys) for key, item in value.items() if key not in keys and not key.endswith("seconds")}
    return [without(item, keys) for item in value] if isinstance(value, list) else value


def digest(path):
    return hashlib.sha256(tensors_of(path)).hexdigest()[:16]


def tensors_of(path):
    """Names, shapes and bytes; not the metadata, which holds the config's hash."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = {key: value for key, value in json.loads(data[8:8 + size]).items() if key != "__metadata__"}
    return json.dumps(header, sort_keys=True).encode() + data[8 + size:]


def ledger_of(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        table = next(name for name in tables if name not in ("meta", "sqlite_sequence"))
        names = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        kept = [i for i, name in enumerate(names) if name not in ("id", "row", "time", "previous", "hash", "link", "chain")]
        return sorted(str([(names[i], row[i]) for i in kept]) for row in database.execute(f"SELECT * FROM {table}"))


TIMES = {"samples_per_second", "config_hash", "name", "ledger_head", "checksum"}


def facts_of(folder, name):
    run = folder / name
    facts = {"exit": (folder / (name + ".exit")).read_text().split("\n")[0]}
    if not (run / "summary.json").exists():
        return facts
    facts["summary"] = without(json.loads((run / "summary.json").read_text()), TIMES)
    facts["metrics"] = [without(json.loads(line), TIMES) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for kind in ("checkpoints", "state", "uploads"):
        facts[kind] = {str(path.relative_to(run)): digest(path) for path in sorted((run / kind).rglob("*.safetensors"))}
    facts["ledger"] = ledger_of(run / "ledger.sqlite")
    return facts


def compare(first, second):
    names = sorted({path.stem for folder in (first, second) for path in folder.glob("*.exit")})
    different = 0
    for name in names:
        if not all((folder / (name + ".exit")).exists() for folder in (first, second)):
            continue
        a, b = facts_of(first, name), facts_of(second, name)
        parts = [key for key in sorted(set(a) | set(b)) if a.get(key) != b.get(key)]
        if parts:
            different += 1
            print(f"{name}: {', '.join(parts)}")
    print(f"{len(names)} cases, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("record", "compare"):
        sys.exit(__doc__)
    if sys.argv[1] == "record":
        record(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.exit(compare(Path(sys.argv[2]), Path(sys.argv[3])))

#!/usr/bin/env python3
"""The list of the papers' tables and figures as configs, with what each would take: docs/results/index.md.

Usage: scripts/paper_list.py measure PROGRAM [NAME…]   runs one round of the first row of each config (or of those named)
       scripts/paper_list.py write                     writes the page from what was measured

What was measured is kept in docs/results/hours.json: seconds of one round and of one evaluation on two threads. A config whose data
or weights are not here is listed with the reason in the program's words.
"""
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "results" / "hours.json"
PAGE = ROOT / "docs" / "results" / "index.md"
SYSTEMS = {"pac-dp": "PAC-DP", "vpdr": "VPDR", "ladp-fl": "LaDP-FL", "dp-fpl": "DP-FPL"}
PATIENCE = 40  # seconds for one short run
# Of CIFAR's records few are taken, with large networks by one client for an epoch: times go by records.
FEW_TRAINED, FEWER_TRAINED, FEW_TESTED = 20_000, 1_000, 500
ALL_TRAINED, ALL_TESTED = 50_000, 10_000
# Data of the same shape, for the time alone, where the config's own is not here.
ALIKE = {"mnist": "fashion-mnist", "cifar10": "tiny-imagenet-32", "cifar100": "tiny-imagenet-32"}


def configs():
    return sorted((ROOT / "examples" / "paper").glob("*/full/*.toml"),
                  key=lambda path: (list(SYSTEMS).index(path.parts[-3]), [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.stem)]))


def axes(sweep):
    """[(key, values)]; values are texts, or tables that set several keys."""
    found = []
    for axis in sweep.get("grid", []):
        key, values = axis.split("=", 1)
        found.append((key, tomllib.loads("x = " + values)["x"] if values.startswith("[") else values.split(",")))
    return found


def first_settings(config):
    sweep = config.get("sweep", {})
    settings = list(sweep["rows"][0]["set"]) if sweep.get("rows") else []
    for key, values in axes(sweep):
        settings += [f"{key}={values[0]}"] if isinstance(values[0], str) else [f"{key}.{k}={v}" for k, v in values[0].items()]
    return settings


def runs(config):
    if "fit" in config:
        fit = config["fit"]
        return len(fit["budgets"]) * len(fit["bounds"]) * fit["repeats"]
    sweep = config["sweep"]
    count = max(1, len(sweep.get("rows", []))) * sweep["seeds"]
    for _, values in axes(sweep):
        count *= len(values)
    return count


def one_round(program, path, config):
    data, federation = config["data"], config["federation"]
    scaled = data["name"].startswith("cifar")
    # As printed, prototypes are fine-tuned from the second round on.
    settings = ["rounds=2", "method.closing_round=false", "federation.eval_every=1"] if "closing_round" in config.get("method", {}) else ["rounds=1"]
    if data["name"] in ALIKE:
        settings.append(f'data.otherwise=["{ALIKE[data["name"]]}"]')
    if scaled:
        costly = "features" in data or config["model"]["name"].startswith("resnet")
        settings += [f"data.limit={FEWER_TRAINED if costly else FEW_TRAINED}", f"data.test_limit={FEW_TESTED}"]
    if scaled and config.get("model", {}).get("name", "").startswith("resnet"):
        settings += ["federation.cohort=1", "federation.local_epochs=1", "federation.eval_clients=1"]
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "run", str(path), "--out", folder + "/run", "--threads", "2", "--quiet"]
        for setting in first_settings(config) + settings:
            command += ["--set", setting]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT)
        except subprocess.TimeoutExpired:
            return {"patience": PATIENCE}
        if done.returncode != 0:
            line = (done.stderr.strip().splitlines() or ["failed"])[-1]
            return {"refused": re.sub(r" into /.*", "", line.replace(str(ROOT) + "/", "")).removeprefix("sotto: ")}
        line = json.loads(Path(folder, "run", "metrics.jsonl").read_text().splitlines()[-1])
    seconds, tested = line["seconds"], line["evaluation_seconds"]
    if scaled:
        cohort = federation.get("cohort", data["clients"])
        seconds *= ALL_TRAINED / data["clients"] * cohort * federation.get("local_epochs", 1) / max(line["samples"], 1)
        tested *= ALL_TESTED / FEW_TESTED
    return {"round_seconds": round(seconds, 3), "evaluation_seconds": round(tested, 3)}


def measure(program, names):
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    kept = {name: value for name, value in kept.items() if (ROOT / name).exists()}
    for path in configs():
        name = str(path.relative_to(ROOT))
        if names and not any(part in name for part in names):
            continue
        kept[name] = one_round(program, path, tomllib.loads(path.read_text()))
        print(name, kept[name], flush=True)
        KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def hours(config, measured):
    every = config.get("federation", {}).get("eval_every", 1)
    whole = config["rounds"] * measured["round_seconds"] + -(-config["rounds"] // every) * measured["evaluation_seconds"]
    return runs(config) * whole / 3600


def shown(config, measured):
    if "round_seconds" in measured:
        value = hours(config, measured)
        return f"{value:.1f}" if value < 10 else f"{value:,.0f}"
    if "patience" in measured:
        return f"–: one round took more than {measured['patience']} s"
    return "–: " + measured["refused"] if "refused" in measured else "–"


def write():
    kept = json.loads(KEPT.read_text())
    text = [
        "# Tables of the papers, whole",
        "",
        "Every table and figure of the four papers as a config: all rounds, five seeds, every baseline. `sotto sweep CONFIG` (`sotto fit` for curves) runs one, and goes on where it",
        "stopped; `--seeds`, `--grid` and `--set rounds=N` cut it. Shorter forms of many of them are in the folders above, with their results on the methods' pages:",
        "[PAC-DP](../methods/pac-dp.md), [VPDR](../methods/vpdr.md), [LaDP-FL](../methods/ladp-fl.md), [DP-FPL](../methods/dp-fpl.md).",
        "",
        "Hours are those of two cores for all runs of a config: one round of its first row was run, and the time is taken for every row's (`scripts/paper_list.py`). Rows differ, so does",
        "a machine that others use too: read them as a size. CIFAR's were timed on a few records and go by their number; where data was not here, others of the same shape were taken for the time alone.",
        "A dash: not timed yet.",
    ]
    system = None
    for path in configs():
        name = str(path.relative_to(ROOT))
        lines = path.read_text().splitlines()
        config = tomllib.loads("\n".join(lines))
        if path.parts[-3] != system:
            system = path.parts[-3]
            text += ["", f"## {SYSTEMS[system]}", "", "| config | what | runs | rounds | hours | measured |", "|---|---|---|---|---|---|"]
        status = next(line[2:] for line in lines if line.startswith(("# Measured", "# Not measured")))
        status = status.split(": ", 1)[1] if status.startswith("Not measured: ") else status.split(".")[0].split(":")[0]
        what = lines[0][2:].split(", ", 1)[1].rstrip(".")
        hours_shown = shown(config, kept.get(name, {}))
        text.append(f"| `{name}` | {what} | {runs(config)} | {config['rounds']} | {hours_shown} | {status.rstrip('.')} |")
    PAGE.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    if len(sys.argv) >= 3 and sys.argv[1] == "measure":
        measure(sys.argv[2], sys.argv[3:])
    elif sys.argv[1:] == ["write"]:
        write()
    else:
        sys.exit(__doc__)

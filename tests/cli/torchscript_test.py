"""Models of one's own, as PyTorch saves them: scripted and traced archives are checked, trained and exported back into the
class they came from. A private step in Sotto is the sum of gradients that PyTorch computes and clips one record at a time,
and noise as loud as was planned.
Usage: torchscript_test.py SOTTO FOLDER. Exits 77 where PyTorch is not installed."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

try:
    import numpy
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy
except ImportError:
    print("skipped: PyTorch is not installed")
    sys.exit(77)

try:
    import torchvision
except ImportError:
    torchvision = None

PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2])
CLASSES, RECORDS, LR, CLIP = 4, 16, 0.5, 0.5


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 8, 8)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 16))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 17, 16))
        self.norm1 = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)
        self.proj = nn.Linear(16, 16)
        self.norm2 = nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        q, k, v = self.qkv(self.norm1(x)).reshape(x.shape[0], -1, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q @ k.transpose(-2, -1) * 8**-0.5).softmax(-1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(x.shape[0], -1, 16))
        x = x + self.mlp(self.norm2(x))
        return self.head(x[:, 0])


class UNet(nn.Module):
    """Down, up again, and a sum with what was there before."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.down = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.up = nn.Upsample(scale_factor=2.0, mode="nearest")
        self.leave = nn.Conv2d(8, 4, 3, padding=1)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, x):
        x = torch.relu(self.norm(self.enter(x)))
        x = x + self.up(torch.relu(self.down(x)))
        return self.head(torch.relu(self.leave(x)).mean((2, 3)))


class Text(nn.Module):
    """Words to an answer without recurrence."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.mix = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = self.words(x.long().clamp(0, 29))  # the rebuilt model is tried out on numbers that are no words
        return self.head(self.norm(x + torch.tanh(self.mix(x))).mean(1))


class Shared(nn.Module):
    """One layer twice."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(6, 8)
        self.again = nn.Linear(8, 8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = torch.relu(self.enter(x))
        return self.head(torch.relu(self.again(torch.relu(self.again(x)))))


def resnet():
    return torchvision.models.resnet18(num_classes=CLASSES, norm_layer=lambda channels: nn.GroupNorm(2, channels))


def run(*arguments, expect=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == expect, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout if expect == 0 else done.stderr


def saved(name, archive):
    file = FOLDER / f"{name}.pt"
    archive.save(str(file))
    return file


class Records:
    """A file for Sotto, and the same as PyTorch reads it."""

    def __init__(self, kind, x, seen):
        self.file = FOLDER / f"{kind}.npz"
        self.seen, self.classes = torch.tensor(seen), torch.arange(RECORDS) % CLASSES
        y = self.classes.numpy()
        numpy.savez(self.file, x_train=x, y_train=y, x_test=x, y_test=y)


def config(weights, records):
    file = FOLDER / "config.toml"
    file.write_text(
        f'rounds = 1\n[data]\nname = "custom"\npath = "{records.file}"\nclients = 1\nclasses = {CLASSES}\n'
        f'[model]\nname = "torchscript"\nweights = "{weights}"\n[federation]\nbatch = {RECORDS}\nlr = {LR}\n'
        f'[method]\nname = "ldp-fedavg"\nclip = {CLIP}\n'
        '[privacy]\nepsilon = 1000000.0\ndelta = 0.01\nadjacency = "zero-out"\n'
    )
    return file


def step_of_sotto(make, model, name, weights, records):
    """How far one step moves each parameter, and the noise in each of its numbers."""
    settings = config(weights, records)
    noise = json.loads(run("plan", settings, "--json"))["releases"][0]["noise_stddev"] * LR / RECORDS
    run("run", settings, "--out", FOLDER / name, "--quiet")
    run("export", FOLDER / name, "--out", FOLDER / f"{name}.trained.pt")
    trained = make()
    trained.load_state_dict(torch.load(FOLDER / f"{name}.trained.pt"))  # strict: the same names
    return [new.detach() - old.detach() for new, old in zip(trained.parameters(), model.parameters())], noise


def step_of_torch(model, records):
    """One record at a time. Also how many of them were clipped."""
    total = [torch.zeros_like(parameter) for parameter in model.parameters()]
    clipped = 0
    for x, y in zip(records.seen, records.classes):
        gradient = torch.autograd.grad(cross_entropy(model(x[None]), y[None]), list(model.parameters()))
        norm = norm_of(gradient)
        clipped += norm > CLIP
        for whole, part in zip(total, gradient):
            whole += min(1.0, CLIP / norm) * part
    return [-LR / RECORDS * part for part in total], clipped


def norm_of(parts):
    return math.sqrt(sum(part.double().pow(2).sum().item() for part in parts))


def expect_the_same_step(name, make, model, archive, records):
    weights = saved(name, archive)
    found = json.loads(run("model", "check", weights, "--json"))
    known = sum(parameter.numel() for parameter in model.parameters())
    assert sum(layer["parameters"] for layer in found["layers"]) == known, found
    right, clipped = step_of_torch(model, records)
    assert clipped >= RECORDS // 4, f"{name}: {clipped} records were clipped, which shows little"
    got, noise = step_of_sotto(make, model, name, weights, records)
    rest = [a.double() - b.double() for a, b in zip(got, right)]
    # Along the right step noise is one number; six standard deviations of it, and what rounding may do.
    along = abs(sum((a * b).sum().item() for a, b in zip(rest, right))) / norm_of(right)
    allowed = 6 * noise + 1e-3 * norm_of(right)
    assert along < allowed, f"{name}: a step of {norm_of(right):.3g} is off by {along:.3g}, more than {allowed:.3g}"
    # Across, noise is all that there may be.
    loudest = noise * (math.sqrt(known) + 6) + 1e-3 * norm_of(right)
    assert norm_of(rest) < loudest, f"{name}: {norm_of(rest):.3g} beside the step, and noise explains {loudest:.3g}"
    print(f"{name}: {len(found['layers'])} layers, {known} parameters, {clipped} of {RECORDS} records clipped", flush=True)


def expect_refusal(name, archive, records, *words):
    """One line, and a reason, from a private run."""
    said = run("run", config(saved(name, archive), records), "--out", FOLDER / name, expect=2)
    assert all(word in said for word in words) and said.count("\n") == 1, said


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 4, batch_first=True)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, x):
        return self.head(self.lstm(x[:, None])[0][:, -1])


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    torch.manual_seed(1)
    random = numpy.random.default_rng(1)
    pixels = random.integers(0, 256, (RECORDS, 3, 32, 32), dtype=numpy.uint8)
    images = Records("images", pixels, (pixels.astype(numpy.float32) - 127.5) / 127.5)
    words = random.integers(0, 30, (RECORDS, 6)).astype(numpy.float32)
    sentences = Records("sentences", words, words)
    values = random.normal(size=(RECORDS, 6)).astype(numpy.float32)
    features = Records("features", values, values)

    for name, make, records in [
        ("vit", Vit, images),
        ("unet", UNet, images),
        ("text", Text, sentences),
        ("shared", Shared, features),
        ("resnet18", resnet, images),
    ]:
        if make is resnet and torchvision is None:
            print("torchvision is not installed: no resnet18")
            continue
        model = make()
        expect_the_same_step(f"{name}-traced", make, model, torch.jit.trace(model, records.seen[:2]), records)
        if make is not UNet:  # nn.Upsample is scripted with branches that depend on shapes
            expect_the_same_step(f"{name}-scripted", make, model, torch.jit.script(model), records)

    batch_norm = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(3600, CLASSES))
    expect_refusal("batch-norm", torch.jit.script(batch_norm), images, "BatchNorm")
    expect_refusal("lstm", torch.jit.trace(Recurrent(), features.seen[:2]), features, "lstm")
    expect_refusal("half", torch.jit.script(Shared().half()), features, "half")
    print("done")


main()

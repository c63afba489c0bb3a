"""Models of one's own, as PyTorch saves them: scripted and traced archives are checked, trained privately and exported
back into the class they came from. Usage: torchscript_test.py SOTTO FOLDER. Exits 77 where PyTorch is not installed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

try:
    import torch
    from torch import nn
except ImportError:
    print("skipped: PyTorch is not installed")
    sys.exit(77)

PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2])


class Block(nn.Module):
    """torchvision's BasicBlock with GroupNorm."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.GroupNorm(2, outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.GroupNorm(2, outputs)
        self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.GroupNorm(2, outputs))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, 8, 3, 1, 1), nn.GroupNorm(2, 8), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.layer1 = Block(8, 8, 1)
        self.layer2 = Block(8, 16, 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Vit(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.patches = nn.Conv2d(channels, 16, 8, 8)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 16))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 17, 16))
        self.norm1 = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)
        self.proj = nn.Linear(16, 16)
        self.norm2 = nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        q, k, v = self.qkv(self.norm1(x)).reshape(x.shape[0], -1, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q @ k.transpose(-2, -1) * 8**-0.5).softmax(-1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(x.shape[0], -1, 16))
        x = x + self.mlp(self.norm2(x))
        return self.head(x[:, 0])


def run(*arguments, expect=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == expect, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout if expect == 0 else done.stderr


def saved(name, archive):
    file = FOLDER / f"{name}.pt"
    archive.save(str(file))
    return file


def train_privately(name, file):
    """The exported parameters of a short private run."""
    run("run", FOLDER / "private.toml", "--set", f"model.weights={file}", "--out", FOLDER / name, "--quiet")
    run("export", FOLDER / name, "--out", FOLDER / f"{name}.trained.pt")
    return torch.load(FOLDER / f"{name}.trained.pt")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    torch.manual_seed(1)
    (FOLDER / "private.toml").write_text(
        'rounds = 2\n[data]\nname = "synthetic-digits"\nlimit = 200\nclients = 2\n[model]\nname = "torchscript"\n'
        '[federation]\nbatch = 20\n[method]\nname = "ldp-fedavg"\n[privacy]\nepsilon = 4\ndelta = 1e-5\nadjacency = "zero-out"\n'
    )
    images = torch.randn(2, 3, 32, 32)
    models = {"resnet": ResNet(3), "vit": Vit(3)}
    archives = {
        "resnet-scripted": ("resnet", torch.jit.script(models["resnet"])),
        "resnet-traced": ("resnet", torch.jit.trace(models["resnet"].train(), images)),
        "vit-traced": ("vit", torch.jit.trace(models["vit"].train(), images)),
    }
    for name, (model, archive) in archives.items():
        file = saved(name, archive)
        found = json.loads(run("model", "check", file, "--json"))
        known = sum(parameter.numel() for parameter in models[model].parameters())
        assert sum(layer["parameters"] for layer in found["layers"]) == known, found
        trained = train_privately(name, file)
        before = {key: value.clone() for key, value in models[model].state_dict().items()}
        fresh = type(models[model])(3)
        fresh.load_state_dict(trained)  # strict: the same names
        moved = max((fresh.state_dict()[key] - value).abs().max().item() for key, value in before.items())
        assert 0 < moved < 10, moved
        print(f"{name}: {len(found['layers'])} layers, {known} parameters, trained and loaded back")

    batch_norm = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(2704, 10))
    words = run("model", "check", saved("batch-norm", torch.jit.script(batch_norm)), expect=2)
    assert "BatchNorm" in words and words.count("\n") == 1, words
    lstm = nn.LSTM(4, 4)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = lstm
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    words = run("model", "check", saved("lstm", torch.jit.trace(Recurrent(), torch.randn(2, 3, 4))), expect=2)
    assert "aten::lstm" in words and words.count("\n") == 1, words
    print("done")


main()

"""A training loop of one's own with an owner's budget before it: logistic regression by gradients that leave noisily.

    PYTHONPATH=build/release/python python3 examples/guard/plain_script.py home
"""

import sys

import numpy

import sotto

CLIP = 1.0
RECORDS = 400  # declared: the mean divides by it, whatever the true number is


def records(seed=0):
    random = numpy.random.default_rng(seed)
    x = random.normal(size=(RECORDS, 4)).astype(numpy.float32)
    y = (x @ numpy.array([1.0, -2.0, 0.5, 0.0]) > 0).astype(numpy.float32)
    return x, y


def gradients(weights, x, y):
    """A row per record."""
    return (1 / (1 + numpy.exp(-x @ weights)) - y)[:, None] * x


def main(home):
    guard = sotto.Guard(home, {"epsilon": 8.0, "delta": 1e-5, "adjacency": "zero-out"})
    x, y = records()
    weights = numpy.zeros(4, dtype=numpy.float32)
    for step in range(20):
        noisy = guard.release(
            "gradient", gradients(weights, x, y), bound=CLIP, epsilon=0.5, key=f"step {step}", per_record=True, divisor=RECORDS
        )
        weights -= 2.0 * noisy
    right = numpy.mean((x @ weights > 0) == (y > 0))
    print(f"{right:.1%} of the records right; spent {guard.spent:.3f} of {guard.budget} in {guard.releases} releases")
    return right


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "home")

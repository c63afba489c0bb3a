import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from pathlib import Path

try:
    import numpy
except ImportError:
    print("numpy is not installed: skipped")
    raise SystemExit(77)

import sotto

CONFIG = """
rounds = 3
[data]
name = "synthetic-digits"
limit = 400
clients = 4
[model]
name = "logistic"
[method]
name = "ldp-fedavg"
[privacy]
epsilon = 4.0
delta = 1e-3
adjacency = "zero-out"
[sweep]
seeds = 2
grid = ["privacy.epsilon=1,4"]
"""


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.config = self.folder / "config.toml"
        self.config.write_text(CONFIG)

    def test_a_run_and_its_result(self):
        rounds = []
        result = sotto.run(self.config, out=self.folder / "run", on_round=rounds.append, privacy__epsilon=2)
        self.assertEqual([line["round"] for line in rounds], [1, 2, 3])
        self.assertEqual(result.rounds, rounds)
        self.assertAlmostEqual(result.accuracy, result.client_accuracy.mean())
        self.assertEqual(result.client_accuracy.shape, (4,))
        self.assertLessEqual(result.proven_epsilon, 2)
        self.assertEqual(result.basis, "simulated")
        self.assertEqual(sotto.Ledger(result.folder).verify()["summary"], "matches")
        self.assertEqual(len(sotto.Ledger(result.folder).show()["clients"]), 4)

    def test_data_frames(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = sotto.run(self.config, out=self.folder / "run").to_dataframe()
        self.assertEqual(list(frame["round"]), [1, 2, 3])

    def test_mistakes_are_one_line(self):
        with self.assertRaisesRegex(sotto.Error, "did you mean"):
            sotto.run(self.config, {"privacy.epsilom": 1}, out=self.folder / "run")
        with self.assertRaisesRegex(sotto.Error, "missing.toml"):
            sotto.run(self.folder / "missing.toml")
        self.assertFalse((self.folder / "run").exists())

    def test_what_a_listener_raises_stops_the_run(self):
        def listen(line):
            raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            sotto.run(self.config, out=self.folder / "run", on_round=listen)
        whole = sotto.run(self.config, out=self.folder / "run", resume=True)
        self.assertEqual(whole.summary["rounds"], 3)

    def test_plan(self):
        plan = sotto.plan(self.config)
        self.assertEqual(plan["method"], "ldp-fedavg")
        self.assertEqual(plan["releases"][0]["times"], 3)

    def test_sweep(self):
        result = sotto.sweep(self.config, out=self.folder / "sweep")
        self.assertEqual(len(result.cells), 2)
        for cell in result.cells:
            self.assertEqual(len(cell.values), 2)
            self.assertAlmostEqual(cell.mean, numpy.mean(cell.values))

    def test_audit(self):
        result = sotto.audit(self.config, quick=True)
        self.assertGreaterEqual(result["entries"][0]["audited_epsilon"], 0)

    def test_ctrl_c_leaves_a_run_to_resume(self):
        script = textwrap.dedent(
            """
            import sys, sotto
            try:
                sotto.run(sys.argv[1], out=sys.argv[2], rounds=100000, on_round=lambda line: print("round", flush=True))
            except KeyboardInterrupt:
                print("stopped", flush=True)
            """
        )
        process = subprocess.Popen(
            [sys.executable, "-c", script, self.config, self.folder / "run"], stdout=subprocess.PIPE, text=True
        )
        self.assertEqual(process.stdout.readline(), "round\n")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertTrue(out.endswith("stopped\n"), out[-200:])
        self.assertEqual(process.returncode, 0)
        checkpoints = list((self.folder / "run" / "checkpoints").iterdir())
        self.assertTrue(checkpoints)


if __name__ == "__main__":
    unittest.main()

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
        statement = sotto.Ledger(result.folder).show()
        self.assertEqual(statement.rows, 12)
        self.assertEqual([client.client for client in statement.clients], [0, 1, 2, 3])
        self.assertEqual(max(client.proven_epsilon for client in statement.clients), result.proven_epsilon)
        self.assertEqual(statement.clients[0].budget, 2)

    def test_data_frames(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = sotto.run(self.config, out=self.folder / "run").to_dataframe()
        self.assertEqual(list(frame["round"]), [1, 2, 3])
        self.assertEqual(list(sotto.Ledger(self.folder / "run").show().to_dataframe()["client"]), [0, 1, 2, 3])
        self.assertEqual(list(sotto.plan(self.config).to_dataframe()["times"]), [3])
        frame = sotto.sweep(self.config, out=self.folder / "sweep").to_dataframe()
        self.assertEqual(list(frame["privacy.epsilon"]), ["1", "4"])
        self.assertEqual(list(frame["seeds"]), [2, 2])
        self.assertTrue((frame["proven_epsilon"] <= [1, 4]).all())

    def test_mistakes_are_one_line(self):
        with self.assertRaisesRegex(sotto.Error, "did you mean"):
            sotto.run(self.config, {"privacy.epsilom": 1}, out=self.folder / "run")
        with self.assertRaisesRegex(sotto.Error, "missing.toml"):
            sotto.run(self.folder / "missing.toml")
        for call, said in [
            (dict(threads="a"), "threads must be a whole number of 0 or more, not 'a'"),
            (dict(threads=-1), "threads must be"),
            (dict(quiet=1), "quiet must be True or False"),
            (dict(settings={"privacy.epsilon": {1}}), "privacy.epsilon must be text, a number"),
            (dict(settings=["rounds=1"]), "settings must be a dictionary"),
            (dict(rounds=float("nan")), "rounds must be a finite number"),
            (dict(rounds=None), "rounds must be text, a number"),
            (dict(on_round=3), "on_round"),
        ]:
            with self.subTest(call), self.assertRaisesRegex(sotto.Error, said) as caught:
                sotto.run(self.config, **{"out": self.folder / "run", **call})
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(sotto.Error, "config must be a path, not None"):
            sotto.plan(None)
        self.assertFalse((self.folder / "run").exists())

    def test_settings_may_be_tables(self):
        self.assertEqual(sotto.plan(self.config, {"privacy": {"epsilon": numpy.int64(2)}, "data": {"clients": 2}}).clients, 2)

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
        self.assertEqual((plan.method, plan.clients, plan.rounds), ("ldp-fedavg", 4, 3))
        (release,) = plan.releases
        self.assertEqual((release.what, release.times), ("model", 3))
        self.assertLessEqual(release.epsilon, 4)

    def test_sweep(self):
        result = sotto.sweep(self.config, out=self.folder / "sweep")
        self.assertEqual(len(result.cells), 2)
        for cell in result.cells:
            self.assertEqual(len(cell.values), 2)
            self.assertAlmostEqual(cell.mean, numpy.mean(cell.values))

    def test_audit(self):
        result = sotto.audit(self.config, quick=True)
        self.assertEqual(result.confidence, 0.95)
        for entry in result.entries:
            self.assertTrue(0 <= entry.audited_epsilon <= entry.proven_epsilon <= 4, entry)

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

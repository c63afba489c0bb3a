import importlib.util
import os
import tempfile
import unittest
from pathlib import Path

try:
    import numpy
except ImportError:
    print("numpy is not installed: skipped")
    raise SystemExit(77)

import sotto

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "replace"}
EXAMPLES = Path(os.environ["SOTTO_SOURCE"]) / "examples" / "guard"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Guards(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.home = Path(self.folder.name) / "home"
        self.addCleanup(self.folder.cleanup)

    def test_same_key_same_bytes_one_payment(self):
        guard = sotto.Guard(self.home, budget=BUDGET)
        first = guard.release("update", numpy.ones(5), bound=1.0, noise_multiplier=50, key="1")
        again = guard.release("update", numpy.zeros(5), bound=1.0, noise_multiplier=50, key="1")
        self.assertEqual(first.tobytes(), again.tobytes())
        self.assertEqual(guard.releases, 1)
        del guard
        reopened = sotto.Guard(self.home)
        self.assertEqual(
            reopened.release("update", numpy.ones(5), bound=1.0, noise_multiplier=50, key="1").tobytes(), first.tobytes()
        )
        del reopened
        self.assertEqual(sotto.Ledger(self.home).verify()["rows"], 1)

    def test_dictionaries_keep_names_and_shapes(self):
        guard = sotto.Guard(self.home, budget=BUDGET)
        given = {"w": numpy.ones((3, 4), numpy.float32), "b": numpy.ones(3)}
        released = guard.release("update", given, bound=1.0, epsilon=0.1, key="1")
        self.assertEqual([(k, v.shape) for k, v in released.items()], [("w", (3, 4)), ("b", (3,))])
        self.assertTrue((given["b"] == 1).all())
        self.assertLessEqual(guard.spent, 0.1)

    def test_the_budget_holds(self):
        guard = sotto.Guard(self.home, budget=BUDGET)
        with self.assertRaises(sotto.BudgetSpent):
            for i in range(100):
                guard.release("update", numpy.ones(5), bound=1.0, epsilon=0.4, key=str(i))
        self.assertGreater(guard.releases, 1)
        self.assertLessEqual(guard.spent, guard.budget)

    def test_mistakes_cost_nothing(self):
        guard = sotto.Guard(self.home, budget=BUDGET)
        ones = numpy.ones(5)
        for call, said in [
            (dict(bound=1.0, key="1"), "noise_multiplier or epsilon"),
            (dict(bound=0.0, epsilon=0.1, key="1"), "bound"),
            (dict(bound=1.0, epsilon=0.1, key=""), "key is empty"),
            (dict(bound=1.0, epsilon=-1, key="1"), "epsilon"),
            (dict(bound=1.0, epsilon=0.1, key="1", divisor=3), "divisor"),
        ]:
            with self.subTest(call), self.assertRaisesRegex(sotto.Error, said):
                guard.release("update", ones, **call)
        self.assertEqual(guard.releases, 0)
        with self.assertRaisesRegex(sotto.Error, "is not a home"):
            sotto.Guard(self.home.parent / "elsewhere")
        with self.assertRaisesRegex(sotto.Error, "another process|in use|written"):
            if os.fork() == 0:
                try:
                    guard.release("update", ones, bound=1.0, epsilon=0.1, key="child")
                except sotto.Error:
                    os._exit(7)
                os._exit(0)
            self.assertEqual(os.waitstatus_to_exitcode(os.wait()[1]), 7)
            sotto.Guard(self.home)

    def test_torch_tensors_come_back_as_such(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        guard = sotto.Guard(self.home, budget=BUDGET)
        released = guard.release("update", torch.ones(2, 3), bound=1.0, epsilon=0.1, key="1")
        self.assertIsInstance(released, torch.Tensor)
        self.assertEqual(tuple(released.shape), (2, 3))


class Shapes(Guards):
    """The three examples: a script, a Flower client, an NVFlare filter."""

    def test_plain_script(self):
        self.assertGreater(example("plain_script").main(self.home), 0.8)

    def test_flower_client(self):
        class Trainer:
            def fit(self, parameters):
                return [array + 100.0 for array in parameters]

        sotto.Guard(self.home, budget=BUDGET)
        client = example("flower_client").GuardedClient(Trainer(), self.home, declared_examples=100, epsilon=0.2)
        start = [numpy.zeros((2, 2), numpy.float32), numpy.zeros(3, numpy.float32)]
        sent, examples, _ = client.fit(start, {"server_round": 1})
        again, _, _ = client.fit(start, {"server_round": 1})
        self.assertEqual(examples, 100)
        self.assertEqual([a.shape for a in sent], [(2, 2), (3,)])
        self.assertTrue(all((a == b).all() for a, b in zip(sent, again)))
        with self.assertRaises(sotto.Error):
            client.evaluate(start, {})

    def test_nvflare_filter(self):
        class Message:
            data = {"w": numpy.ones(4, numpy.float32)}
            meta = {"NUM_STEPS_CURRENT_ROUND": 17}

        class Shareable:
            def get_header(self, name):
                return {"current_round": 3}[name]

        class Context:
            def get_job_id(self):
                return "job"

        sotto.Guard(self.home, budget=BUDGET)
        guarded = example("nvflare_filter").GuardFilter(self.home, epsilon=0.2)
        sent = guarded.process_dxo(Message(), Shareable(), Context())
        self.assertEqual(sent.meta, {})
        self.assertFalse((sent.data["w"] == 1).any())


if __name__ == "__main__":
    unittest.main()

import importlib.util
import os
import tempfile
import threading
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
        guard = sotto.Guard(self.home, BUDGET)
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
        guard = sotto.Guard(self.home, BUDGET)
        given = {"w": numpy.ones((3, 4), numpy.float32), "b": numpy.ones(3)}
        released = guard.release("update", given, bound=1.0, epsilon=0.1, key="1")
        self.assertEqual([(k, v.shape) for k, v in released.items()], [("w", (3, 4)), ("b", (3,))])
        self.assertTrue((given["b"] == 1).all())
        self.assertLessEqual(guard.spent, 0.1)

    def test_the_budget_holds(self):
        guard = sotto.Guard(self.home, BUDGET)
        with self.assertRaises(sotto.BudgetSpent):
            for i in range(100):
                guard.release("update", numpy.ones(5), bound=1.0, epsilon=0.4, key=str(i))
        self.assertGreater(guard.releases, 1)
        self.assertLessEqual(guard.spent, guard.budget)

    def test_mistakes_cost_nothing(self):
        guard = sotto.Guard(self.home, BUDGET)
        ones = numpy.ones(5)
        for call, said in [
            (dict(bound=1.0, key="1"), "noise_multiplier or epsilon"),
            (dict(bound=0.0, epsilon=0.1, key="1"), "bound"),
            (dict(bound=1.0, epsilon=0.1, key=""), "key is empty"),
            (dict(bound=1.0, epsilon=-1, key="1"), "epsilon"),
            (dict(bound=1.0, epsilon=0.1, key="1", divisor=3), "divisor"),
            (dict(bound="x", epsilon=0.1, key="1"), "bound must be a number, not 'x'"),
            (dict(bound=1.0, epsilon=None, noise_multiplier=[1], key="1"), r"noise_multiplier must be a number, not \[1\]"),
            (dict(bound=1.0, epsilon=0.1, key="1", per_record="yes"), "per_record must be True or False"),
            (dict(bound=1.0, epsilon=0.1, key="\udc00"), "key must be Unicode text"),
        ]:
            with self.subTest(call), self.assertRaisesRegex(sotto.Error, said) as caught:
                guard.release("update", ones, **call)
            self.assertNotIn("\n", str(caught.exception))
        for given, said in [
            ({1: ones, "1": ones}, "two tensors are called '1'"),
            ({"__metadata__": ones}, "no tensor may be called '__metadata__'"),
            ({}, "nothing to release"),
            (numpy.array(["a"]), "'update' must hold real numbers"),
            (numpy.array([object()]), "'update' must hold real numbers"),
            (numpy.ones(3) * 1j, "'update' must hold real numbers, not complex128"),
            ([[1.0], [1.0, 2.0]], "'update' is no array of numbers"),
            (None, "'update' must hold real numbers"),
        ]:
            with self.subTest(given), self.assertRaisesRegex(sotto.Error, said) as caught:
                guard.release("update", given, bound=1.0, epsilon=0.1, key="1")
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(sotto.Error, "the name of a release must be text, not 3"):
            guard.release(3, ones, bound=1.0, epsilon=0.1, key="1")
        self.assertEqual(guard.releases, 0)
        with self.assertRaisesRegex(sotto.Error, "is not a home"):
            sotto.Guard(self.home.parent / "elsewhere")
        with self.assertRaisesRegex(sotto.Error, "home must be a path, not 7"):
            sotto.Guard(7)

    def test_any_real_array(self):
        guard = sotto.Guard(self.home, BUDGET)
        for number, given in enumerate(
            [numpy.float64(3), numpy.ones((4, 3)).T, numpy.arange(3), numpy.array([True]), numpy.ones(2, ">f4"), [1, 2.5]]
        ):
            released = guard.release("update", given, bound=1.0, noise_multiplier=100, key=str(number))
            self.assertEqual((released.shape, released.dtype), (numpy.shape(given), numpy.float32))

    def test_a_promise_is_written_by_the_engine(self):
        for bad, said in [
            ({"epsilon": 1, "delta": 1e-5}, "adjacency"),
            ({**BUDGET, "epsilon": -1}, "epsilon"),
            ({**BUDGET, "epsilon": float("nan")}, "finite"),
            ({**BUDGET, "epsilom": 1}, "did you mean 'epsilon'"),
            ({**BUDGET, "adjacency": {"replace"}}, "must be text"),
            (3, "policy is a dictionary"),
            (self.home.parent / "missing.toml", "missing.toml"),
        ]:
            with self.subTest(bad), self.assertRaisesRegex(sotto.Error, said) as caught:
                sotto.Guard(self.home, bad)
            self.assertNotIn("\n", str(caught.exception))
            self.assertFalse(self.home.exists())
        guard = sotto.Guard(self.home, {**BUDGET, "epsilon": numpy.float32(2), "unit": "client"})
        self.assertEqual(guard.budget, 2)
        del guard
        self.assertEqual(sotto.Guard(self.home, BUDGET).budget, 2, "what was promised first holds")

    def test_policies_of_owners(self):
        policy = "[budget]\nepsilon = 3.0\ndelta = 1e-5\nadjacency = \"replace\"\n"
        self.home.mkdir()
        (self.home / "policy.toml").write_text(policy)
        self.assertEqual(sotto.Guard(self.home, BUDGET).budget, 3)
        self.assertFalse((self.home / "budget.toml").exists())
        self.assertEqual(sotto.Guard(self.home.parent / "other", self.home / "policy.toml").budget, 3)

    def test_threads_share_a_guard(self):
        guard = sotto.Guard(self.home, BUDGET)
        results = [None] * 8

        def use(i):
            ones = numpy.ones(1000)
            results[i] = [guard.release("update", ones, bound=1.0, noise_multiplier=100, key=f"{k}") for k in range(4)]
            self.assertLessEqual(guard.spent, guard.budget)

        threads = [threading.Thread(target=use, args=(i,)) for i in range(len(results))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for other in results[1:]:
            self.assertTrue(all((a == b).all() for a, b in zip(results[0], other)))
        self.assertEqual(guard.releases, 4)
        self.assertEqual(sotto.Ledger(self.home).verify().rows, 4)

    def test_a_forked_process_leaves_the_home_alone(self):
        guard = sotto.Guard(self.home, BUDGET)
        ones = numpy.ones(5)
        guard.release("update", ones, bound=1.0, noise_multiplier=100, key="before")
        child = os.fork()
        if child == 0:
            refused = 0
            for use in [
                lambda: guard.release("update", ones, bound=1.0, noise_multiplier=100, key="child"),
                lambda: guard.spent,
                lambda: guard.releases,
                lambda: sotto.Guard(self.home),
            ]:
                try:
                    use()
                except sotto.Error:
                    refused += 1
            del guard  # closes what it has inherited
            os._exit(refused)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 4)
        guard.release("update", ones, bound=1.0, noise_multiplier=100, key="after")
        self.assertEqual(guard.releases, 2)
        self.assertEqual(sotto.Ledger(self.home).verify().rows, 2)

    def test_torch_tensors_come_back_as_such(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        guard = sotto.Guard(self.home, BUDGET)
        given = {
            "w": torch.ones(2, 3, requires_grad=True),
            "half": torch.ones(2, dtype=torch.bfloat16),
            "turned": torch.ones(4, 3).T,
            "scalar": torch.tensor(1.0),
        }
        released = guard.release("update", given, bound=1.0, epsilon=0.1, key="1")
        for name, value in released.items():
            self.assertIsInstance(value, torch.Tensor)
            self.assertEqual((value.shape, value.dtype), (given[name].shape, torch.float32))
        self.assertEqual(given["w"].sum().item(), 6)
        with self.assertRaisesRegex(sotto.Error, "'update' is no array of numbers"):
            guard.release("update", torch.ones(3).to_sparse(), bound=1.0, epsilon=0.1, key="2")


class Shapes(Guards):
    """The three examples: a script, a Flower client, an NVFlare filter."""

    def test_plain_script(self):
        self.assertGreater(example("plain_script").main(self.home), 0.8)

    def test_flower_client(self):
        class Trainer:
            def fit(self, parameters):
                return [array + 100.0 for array in parameters]

        sotto.Guard(self.home, BUDGET)
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

        sotto.Guard(self.home, BUDGET)
        guarded = example("nvflare_filter").GuardFilter(self.home, epsilon=0.2)
        sent = guarded.process_dxo(Message(), Shareable(), Context())
        self.assertEqual(sent.meta, {})
        self.assertFalse((sent.data["w"] == 1).any())


if __name__ == "__main__":
    unittest.main()

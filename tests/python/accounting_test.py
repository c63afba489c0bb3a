import json
import math
import os
import subprocess
import threading
import unittest

import sotto

DPSGD = dict(noise_multiplier=1.0, steps=10000, sampling_rate=0.01, delta=1e-5, adjacency="add-remove")


class Accounting(unittest.TestCase):
    def test_epsilon_of_noisy_descent(self):
        result = sotto.account(**DPSGD)
        self.assertIsInstance(result, sotto.Guarantee)
        words = [word for key, value in DPSGD.items() for word in ("--" + key.replace("_", "-"), str(value))]
        printed = subprocess.run(
            [os.environ["SOTTO"], "account", "--method", result.method, "--json", *words], capture_output=True, check=True
        )
        self.assertEqual(result.epsilon, json.loads(printed.stdout)["epsilon"])
        self.assertEqual(result.delta, 1e-5)
        self.assertEqual(result.adjacency, "add-remove")

    def test_delta_of_a_gaussian(self):
        """Against the closed form: Phi(1/2 - e) - exp(e) Phi(-1/2 - e) at multiplier 1."""
        phi = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))
        exact = phi(0.5 - 1) - math.e * phi(-0.5 - 1)
        self.assertAlmostEqual(sotto.account(noise_multiplier=1, epsilon=1).delta, exact, delta=1e-9)

    def test_calibration_is_the_inverse(self):
        plan = dict(steps=100, sampling_rate=0.1, adjacency="add-remove")
        noise = sotto.calibrate(epsilon=2, delta=1e-5, **plan).noise_multiplier
        spent = sotto.account(noise_multiplier=noise, delta=1e-5, **plan).epsilon
        self.assertLessEqual(spent, 2 + 1e-6)
        self.assertGreater(spent, 1.99)

    def test_compose(self):
        step = dict(noise_multiplier=5.0, adjacency="replace")
        twice = sotto.account(compose=[step, step], delta=1e-5).epsilon
        self.assertAlmostEqual(twice, sotto.account(steps=2, delta=1e-5, **step).epsilon, places=6)

    def test_mistakes_are_one_line(self):
        for question, said in [
            (dict(noise_multiplier=1), "delta or epsilon"),
            (dict(noise_multiplier=-1, delta=1e-5), "above 0"),
            (dict(noise_multiplier=float("nan"), delta=1e-5), "noise"),
            (dict(noise_multiplier=1, delta=1e-5, adjacency="near"), "near"),
            (dict(noise_multiplier=1, sampling_rate=0.1, delta=1e-5), "adjacency"),
        ]:
            with self.subTest(question):
                with self.assertRaisesRegex(sotto.Error, said) as caught:
                    sotto.account(**question)
                self.assertNotIn("\n", str(caught.exception))
        self.assertTrue(issubclass(sotto.Error, ValueError))

    def test_other_threads_run_meanwhile(self):
        """The interpreter's lock is free while an answer is computed."""
        counted, stop = [0], threading.Event()

        def count():
            while not stop.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        before = counted[0]
        for i in range(5):
            sotto.calibrate(epsilon=1 + i / 100, delta=1e-5, steps=1000, sampling_rate=0.01, adjacency="add-remove")
        after = counted[0]
        stop.set()
        thread.join()
        self.assertGreater(after - before, 1000)


if __name__ == "__main__":
    unittest.main()

"""A Flower client whose updates pass a guard: the same server, the same strategy, an owner's budget at home.

The client sends its noisy *update* added to the parameters it got, so that a FedAvg strategy needs no change. Its number
of examples, by which strategies weigh, is declared and not counted.
"""

import numpy

import sotto

try:
    from flwr.client import NumPyClient
except ImportError:  # only the shape of a client is needed to read this
    NumPyClient = object


class GuardedClient(NumPyClient):
    def __init__(self, trainer, home, declared_examples, clip=1.0, epsilon=0.5):
        self.trainer = trainer  # fit(parameters) -> new parameters, evaluate(parameters) -> (loss, n, metrics)
        self.guard = sotto.Guard(home)
        self.declared_examples = declared_examples
        self.clip = clip
        self.epsilon = epsilon

    def fit(self, parameters, config):
        trained = self.trainer.fit([array.copy() for array in parameters])
        update = {str(i): new - old for i, (new, old) in enumerate(zip(trained, parameters))}
        key = f"round {config['server_round']}"
        noisy = self.guard.release("update", update, bound=self.clip, epsilon=self.epsilon, key=key)
        sent = [old + noisy[str(i)].astype(numpy.asarray(old).dtype) for i, old in enumerate(parameters)]
        return sent, self.declared_examples, {}

    def evaluate(self, parameters, config):
        raise sotto.Error("scores on private records are releases too: evaluate at home")

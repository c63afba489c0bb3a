"""An NVFlare filter for task results: whatever executor trains, weight differences leave through a guard."""

import sotto

try:
    from nvflare.apis.dxo import DXO, DataKind
    from nvflare.apis.dxo_filter import DXOFilter
except ImportError:  # only the shape of a filter is needed to read this
    DXO = object

    class DataKind:
        WEIGHT_DIFF = "WEIGHT_DIFF"

    class DXOFilter:
        def __init__(self, supported_data_kinds=None, data_kinds_to_filter=None):
            pass


class GuardFilter(DXOFilter):
    def __init__(self, home, clip=1.0, epsilon=0.5):
        super().__init__(supported_data_kinds=[DataKind.WEIGHT_DIFF], data_kinds_to_filter=[DataKind.WEIGHT_DIFF])
        self.guard = sotto.Guard(home)
        self.clip = clip
        self.epsilon = epsilon

    def process_dxo(self, dxo, shareable, fl_ctx):
        key = f"{fl_ctx.get_job_id()}, round {shareable.get_header('current_round')}"
        dxo.data = self.guard.release("update", dxo.data, bound=self.clip, epsilon=self.epsilon, key=key)
        dxo.meta = {}  # counts and scores would leave beside the budget
        return dxo

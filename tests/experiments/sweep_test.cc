#include "experiments/sweep.h"

#include <gtest/gtest.h>

namespace sotto::experiments {
namespace {

using nlohmann::json;

TEST(SweepTable, SaysNullWhereThereIsNothing) {
  SweepTable table;
  table.metric = "accuracy.mean";
  table.cells.resize(1);
  table.cells[0].settings = json::object();
  table.cells[0].claimed_epsilon.reset();
  EXPECT_EQ(to_json(table), json::parse(R"({
    "metric": "accuracy.mean",
    "test": "Mann–Whitney U, two-sided, exact up to 60 values; the seed is the unit",
    "against": null,
    "quick": false,
    "selection": null,
    "cells": [{
      "row": "", "settings": {}, "claimed_epsilon": null, "proven_epsilon": 0.0, "basis": "proven", "seeds": [],
      "values": [], "runs": [], "failures": [], "mean": null, "std": null, "p_value": null, "against": null
    }]
  })"));
}

TEST(SweepTable, HoldsWhatRunsCameTo) {
  SweepTable table;
  table.against = "alone";
  table.quick = true;
  table.cells.push_back({.row = "together",
                         .settings = {{"federation.lr", "0.1"}},
                         .claimed_epsilon = 1.0,
                         .proven_epsilon = 2.0,
                         .basis = privacy::Basis::kSimulated,
                         .seeds = {7, 8},
                         .values = {0.5, 0.75},
                         .runs = {"sweep/a", "sweep/b"},
                         .failures = {"no disk"},
                         .mean = 0.625,
                         .std = 0.125,
                         .p_value = 0.25,
                         .against = 1});
  const json value = to_json(table);
  EXPECT_EQ(value["against"], "alone");
  EXPECT_EQ(value["quick"], true);
  EXPECT_EQ(value["cells"][0], json::parse(R"({
    "row": "together", "settings": {"federation.lr": "0.1"}, "claimed_epsilon": 1.0, "proven_epsilon": 2.0,
    "basis": "simulated", "seeds": [7, 8], "values": [0.5, 0.75], "runs": ["sweep/a", "sweep/b"], "failures": ["no disk"],
    "mean": 0.625, "std": 0.125, "p_value": 0.25, "against": 1
  })"));
}

}  // namespace
}  // namespace sotto::experiments

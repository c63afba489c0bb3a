// What anybody may read who reaches the port.
#include "serve/metrics.h"

#include "at_home.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

namespace sotto::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string scraped(const std::string& sampling) {
  const federation::Setup setup = federation::small_setup(
      fmt::format("rounds = 2\n[data]\nclients = 3\n[federation]\ncohort = 2\nsampling = \"{}\"\n[method]\nname = "
                  "\"dp-fedavg\"\n{}",
                  sampling, federation::privacy_terms("dp-fedavg")));
  const federation::FederationPlan plan = plan_of(setup);
  const TempFolder folder;
  Server server(folder.path() / "server", plan, [] { return false; });
  const Metrics metrics(server.hub(), plan, "127.0.0.1:0");
  const auto answer = httplib::Client("127.0.0.1", metrics.port()).Get("/metrics");
  return answer ? answer->body : "";
}

TEST(Metrics, CountUploadsOnlyWhereCohortsArePublic) {
  EXPECT_THAT(scraped("fixed"), HasSubstr("sotto_uploads_total 0"));
  for (const char* secret : {"poisson", "secret"}) {
    const std::string text = scraped(secret);
    EXPECT_THAT(text, HasSubstr("sotto_rounds_planned 2"));
    EXPECT_THAT(text, Not(HasSubstr("sotto_upload"))) << "how many take part is a secret of each round";
  }
}

}  // namespace
}  // namespace sotto::serve

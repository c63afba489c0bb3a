#include "methods/prototypes/prototype_member.h"

#include "base/error.h"

#include <ATen/ATen.h>

namespace sotto::methods {

namespace {

constexpr double kEncoderShare = 0.5;

// Keys of a plug-in that is off, or of an encoder that is trained otherwise.
void refuse_idle_options(const settings::Section& section, const PrototypeOptions& o, double encoder_share) {
  const PrototypeOptions fallback;
  const char* no_dcr = "without dcr = true";
  section.only_if(o.dcr, "gamma", o.gamma == fallback.gamma, no_dcr);
  section.only_if(o.dcr, "beta", o.beta == fallback.beta, no_dcr);
  section.only_if(o.dcr, "tau", o.tau == fallback.tau, no_dcr);
  section.only_if(o.dcr, "distill", o.distill == fallback.distill, no_dcr);
  section.only_if(o.dcr, "distill_by_tau", !o.distill_by_tau, no_dcr);
  const char* frozen = "without encoder = \"dp-sgd\"";
  const bool noisy = o.encoder == EncoderTraining::kDpSgd;
  section.only_if(noisy, "encoder_share", encoder_share == kEncoderShare, frozen);
  section.only_if(noisy, "encoder_clip", o.encoder_clip == fallback.encoder_clip, frozen);
  const char* not_public = "without encoder = \"public\"";
  const bool is_public = o.encoder == EncoderTraining::kPublic;
  section.only_if(is_public, "public_data", o.public_data.empty(), not_public);
  section.only_if(is_public, "public_epochs", o.public_epochs == fallback.public_epochs, not_public);
}

}  // namespace

PrototypeOptions read_prototype_options(settings::Section& section) {
  PrototypeOptions o;
  o.release = read_release_options(section);
  o.width = section.integer("width", o.width, settings::at_least(1));
  o.head = section.integers("head", o.head, settings::at_least(1));
  o.heads = section.choice("heads", o.heads);
  o.dcr = section.boolean("dcr", o.dcr);
  o.gamma = section.number("gamma", o.gamma, settings::kPositive);
  o.beta = section.number("beta", o.beta, {.low = 0.0, .high = 1.0, .high_excluded = true});
  o.tau = section.number("tau", o.tau, settings::kPositive);
  o.distill = section.number("distill", o.distill, settings::kNonNegative);
  o.distill_by_tau = section.boolean("distill_by_tau", o.distill_by_tau);
  o.trained_projection = section.boolean("trained_projection", o.trained_projection);
  o.anchors = section.integer("anchors", o.anchors, settings::between(1, 64));
  o.cluster_rate = section.number("cluster_rate", o.cluster_rate, {.low = 0.0, .high = 1.0, .low_excluded = true});
  o.shrink = section.boolean("shrink", o.shrink);
  o.normalise = section.boolean("normalise", o.normalise);
  o.prior = section.boolean("prior", o.prior);
  o.own_centre = section.boolean("own_centre", o.own_centre);
  o.diagnostics = section.boolean("diagnostics", o.diagnostics);
  o.encoder = section.choice("encoder", o.encoder);
  const double share = section.number("encoder_share", kEncoderShare,
                                      {.low = 0.0, .high = 1.0, .low_excluded = true, .high_excluded = true});
  if (o.encoder == EncoderTraining::kDpSgd) o.release.encoder_share = share;
  o.encoder_clip = section.number("encoder_clip", o.encoder_clip, settings::kPositive);
  o.public_data = section.text("public_data", "");
  o.public_epochs = section.integer("public_epochs", o.public_epochs, settings::at_least(1));
  refuse_idle_options(section, o, share);
  return o;
}

PrototypeMember member_of(const RunSettings& spec) {
  const auto& [options, framework] = spec.options_of<PrototypeChoice>();
  PrototypeMember member{.options = options, .framework = framework};
  member.printed = spec.as_printed();
  const PrototypeOptions& o = member.options;
  if (o.encoder != EncoderTraining::kFrozen && (member.printed || !o.release.noisy())) {
    fail_user(
        "method.encoder: the printed encoder is trained without noise, and so is one whose releases have none; leave "
        "it out");
  }
  if (o.encoder == EncoderTraining::kDpSgd && o.release.centre) {
    fail_user("method.centre: the encoder that is trained with noise moves; leave one of them out");
  }
  if (o.encoder == EncoderTraining::kPublic && o.public_data.empty()) {
    fail_user(
        "method.public_data: encoder = \"public\" needs the name of a public dataset, as `sotto data list` knows it");
  }
  if (o.trained_projection && !member.printed) {
    fail_user("method.trained_projection: prototypes of a trained map would not be of public features; leave it out");
  }
  if (o.release.closing_round && expected_cohort(spec) < spec.data.clients) {
    fail_user("method.closing_round: every client must take part in the last round; set federation.cohort = 0");
  }
  if (member.printed && member.options.shrink) {
    fail_user("method.shrink: the paper's server does not know the noise; leave it out, or set variant = \"sound\"");
  }
  return member;
}

std::unique_ptr<PrototypeRelease> release_of(const PublicContext& context, const PrototypeMember& member) {
  return make_prototype_release(context, member.options.release, member.shape(context), member.clusters());
}

at::Tensor public_directions(const PrototypeShape& shape, uint64_t seed) {
  RandomStream stream(seed, "public-anchors");
  return at::empty({shape.anchors, shape.width}).normal_(0, 1, stream.torch_generator());
}

}  // namespace sotto::methods

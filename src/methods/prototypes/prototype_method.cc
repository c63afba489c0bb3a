#include "methods/prototypes/framework.h"
#include "methods/prototypes/prototype_client.h"
#include "methods/prototypes/prototype_encoder.h"
#include "methods/prototypes/prototype_server.h"

namespace sotto::methods {
namespace {

ReleasePlan plan(const PublicContext& context, const ClientFacts& client, const PrototypeMember& member) {
  const auto release = release_of(context, member);
  ReleasePlan plan = release->plan(client);
  if (member.options.encoder != EncoderTraining::kDpSgd) return plan;
  const NoisyEncoder encoder(context, kinds_of(context, member).front());
  const privacy::DescentPlan descent = encoder_plan(context.spec, member.options, release->prices(), client);
  plan.push_back(encoder_channel(encoder.descent, descent, release->prices(), client));
  plan.back()
      .times(plan.front().times(), plan.front().how_often())
      .reaching({.coordinates = encoder.descent.coordinates(descent)});
  return plan;
}

}  // namespace

MethodEntry prototype_method(std::string name, std::string what, std::string citation, FrameworkReader read) {
  const auto member = [](const PublicContext& context) { return member_of(context.spec); };
  return {.name = std::move(name),
          .what = std::move(what),
          .citation = std::move(citation),
          .family = "prototypes",
          .units = {privacy::Unit::kRecord},
          .observers = {privacy::Observer::kServer},
          .variants = {Variant::kSound, Variant::kPaper},
          .read_options =
              [read](settings::Section& section) {
                PrototypeChoice choice{.options = read_prototype_options(section)};
                choice.framework = read(section);
                const bool several = choice.framework->local() != LocalPrototypes::kMeans;
                const PrototypeOptions& o = choice.options;
                const PrototypeOptions fallback;
                const char* one = "with a method where a class has one prototype";
                section.only_if(several, "anchors", o.anchors == fallback.anchors, one);
                section.only_if(several, "cluster_rate", o.cluster_rate == fallback.cluster_rate, one);
                return std::any(std::move(choice));
              },
          .public_data = [](const RunSettings& spec) { return public_records(spec, member_of(spec).options); },
          .plan = [member](const PublicContext& context,
                           const ClientFacts& client) { return plan(context, client, member(context)); },
          .personal = [](const RunSettings&) { return true; },
          .global = [](const RunSettings&) { return false; },
          .make_client = [member](const ClientContext& context) -> std::unique_ptr<ClientMethod> {
            return make_prototype_client(context, member(context));
          },
          .make_server = [member](const PublicContext& context) -> std::unique_ptr<ServerMethod> {
            return make_prototype_server(context, member(context));
          },
          .broadcast_shape =
              [member](const PublicContext& context, const BroadcastShape&, const Broadcast& broadcast) {
                return prototype_broadcast_shape(context, member(context), broadcast);
              },
          .upload_shape =
              [member](const PublicContext& context, const Broadcast& broadcast) {
                return release_of(context, member(context))->upload_shape(broadcast);
              }};
}

}  // namespace sotto::methods

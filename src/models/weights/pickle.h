// Python pickles as plain data. Nothing is ever executed: a call to a Python function is kept as its name and
// arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sotto::models {

struct Pickled;
using PickledPtr = std::shared_ptr<Pickled>;

struct Pickled {
  enum class Kind {
    kNone,
    kNumber,      // bool, int or float; `integer` is valid unless it was a float
    kText,        // str or bytes, in `text`
    kSequence,    // list, tuple or set, in `items`
    kMapping,     // dict or OrderedDict, in `entries`
    kGlobal,      // a class or function, in `text` as "module.name"
    kCall,        // text(items…), with `state` if the object was given one
    kPersistent,  // a reference outside of the pickle, in items[0]
  };
  Kind kind = Kind::kNone;
  int64_t integer = 0;
  std::string text;
  std::vector<PickledPtr> items;
  std::vector<std::pair<PickledPtr, PickledPtr>> entries;
  PickledPtr state;

  // The value under a text key, or null.
  const Pickled* find(std::string_view key) const;
};

// Protocols 2 to 5. Truncated or malformed input is a UserError; `where` names it.
PickledPtr read_pickle(std::string_view bytes, const std::string& where);

}  // namespace sotto::models

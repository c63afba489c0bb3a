#include "models/weights/pickle.h"

#include "base/error.h"

#include <cstring>
#include <deque>
#include <map>

namespace sotto::models {
namespace {

using Kind = Pickled::Kind;

// The stack machine of Python's pickle module.
class Machine {
 public:
  Machine(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  PickledPtr run() {
    while (true) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') return {objects_, pop().get()};
      if (!run_literal(code) && !run_container(code) && !run_object(code) && !run_stack(code))
        fail_user("{}: its pickle uses operation 0x{:02x}, which is not supported: save a plain state dict", where_,
                  code);
    }
  }

 private:
  [[noreturn]] void fail() const { fail_user("{}: truncated or malformed pickle", where_); }

  // Objects may contain each other and themselves, so that none of them owns another: all live as long as the result.
  PickledPtr make(Kind kind) {
    Pickled& made = objects_->emplace_back();
    made.kind = kind;
    return {PickledPtr(), &made};
  }
  PickledPtr make_number(int64_t number) {
    auto value = make(Kind::kNumber);
    value->integer = number;
    return value;
  }
  PickledPtr make_text(std::string_view text) {
    auto value = make(Kind::kText);
    value->text = text;
    return value;
  }

  // What is copied from one object to another is little beside the file itself, unless somebody means harm.
  void copy(size_t size) {
    constexpr size_t kTimesTheFile = 16;
    copied_ += size;
    if (copied_ / kTimesTheFile > bytes_.size()) fail();
  }

  std::string_view take(uint64_t size) {
    if (size > bytes_.size() - position_) fail();
    const std::string_view taken = bytes_.substr(position_, size);
    position_ += size;
    return taken;
  }

  template <typename Int>
  Int integer() {
    Int value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view line() {
    const size_t end = bytes_.find('\n', position_);
    if (end == bytes_.npos) fail();
    const std::string_view taken = take(end - position_);
    ++position_;
    return taken;
  }

  int64_t long_integer(uint64_t size) {
    const std::string_view digits = take(size);
    if (digits.size() > 8) return 0;  // no tensor shape is this large; such numbers are seeds and hashes
    uint64_t value = !digits.empty() && (digits.back() & 0x80) ? ~uint64_t{0} : 0;
    std::memcpy(&value, digits.data(), digits.size());
    return static_cast<int64_t>(value);
  }

  void push(PickledPtr value) { stack_.push_back(std::move(value)); }

  PickledPtr pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail();
    PickledPtr value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }

  Pickled& top() {
    if (stack_.empty()) fail();
    return *stack_.back();
  }

  std::vector<PickledPtr> pop_to_mark() {
    if (marks_.empty()) fail();
    const auto begin = stack_.begin() + static_cast<int64_t>(marks_.back());
    marks_.pop_back();
    std::vector<PickledPtr> values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return values;
  }

  std::vector<PickledPtr> pop_many(size_t count) {
    std::vector<PickledPtr> values(count);
    for (size_t i = count; i-- > 0;) values[i] = pop();
    return values;
  }

  void push_sequence(std::vector<PickledPtr> items) {
    auto value = make(Kind::kSequence);
    value->items = std::move(items);
    push(std::move(value));
  }

  void append(const std::vector<PickledPtr>& items) {
    auto& target = top().items;
    target.insert(target.end(), items.begin(), items.end());
  }

  void set_items(const std::vector<PickledPtr>& items) {
    if (items.size() % 2 != 0) fail();
    for (size_t i = 0; i < items.size(); i += 2) top().entries.emplace_back(items[i], items[i + 1]);
  }

  void push_global(std::string_view module, std::string_view name) {
    auto value = make(Kind::kGlobal);
    copy(module.size() + name.size());
    value->text = std::string(module) + "." + std::string(name);
    push(std::move(value));
  }

  void call(const PickledPtr& callee, const PickledPtr& arguments) {
    const bool dictionary = callee->text == "collections.OrderedDict";
    auto value = make(dictionary ? Kind::kMapping : Kind::kCall);
    if (!dictionary) {
      copy(callee->text.size() + arguments->items.size());
      value->text = callee->text;
      value->items = arguments->items;
    }
    push(std::move(value));
  }

  void remember(uint64_t slot) {
    top();
    memo_[slot] = stack_.back();
  }

  void recall(uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) fail();
    push(found->second);
  }

  bool run_literal(unsigned char code) {
    switch (code) {
      case 'N':
        push(make(Kind::kNone));
        return true;
      case 0x88:
        push(make_number(1));
        return true;
      case 0x89:
        push(make_number(0));
        return true;
      case 'J':
        push(make_number(integer<int32_t>()));
        return true;
      case 'K':
        push(make_number(integer<uint8_t>()));
        return true;
      case 'M':
        push(make_number(integer<uint16_t>()));
        return true;
      case 0x8a:
        push(make_number(long_integer(integer<uint8_t>())));
        return true;
      case 0x8b:
        push(make_number(long_integer(integer<uint32_t>())));
        return true;
      case 'G':
        take(8);
        push(make_number(0));
        return true;
      case 'U':
      case 'C':
      case 0x8c:
        push(make_text(take(integer<uint8_t>())));
        return true;
      case 'T':
      case 'B':
      case 'X':
        push(make_text(take(integer<uint32_t>())));
        return true;
      case 0x8d:
      case 0x8e:
      case 0x96:
        push(make_text(take(integer<uint64_t>())));
        return true;
      default:
        return false;
    }
  }

  bool run_container(unsigned char code) {
    switch (code) {
      case ']':
      case ')':
      case 0x8f:
        push(make(Kind::kSequence));
        return true;
      case '}':
        push(make(Kind::kMapping));
        return true;
      case 'l':
      case 't':
      case 0x91:
        push_sequence(pop_to_mark());
        return true;
      case 0x85:
        push_sequence(pop_many(1));
        return true;
      case 0x86:
        push_sequence(pop_many(2));
        return true;
      case 0x87:
        push_sequence(pop_many(3));
        return true;
      case 'a':
        append(pop_many(1));
        return true;
      case 'e':
      case 0x90:
        append(pop_to_mark());
        return true;
      case 's':
        set_items(pop_many(2));
        return true;
      case 'u':
        set_items(pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  bool run_object(unsigned char code) {
    switch (code) {
      case 'c': {
        const std::string_view module = line();
        push_global(module, line());
        return true;
      }
      case 0x93: {
        const auto parts = pop_many(2);
        push_global(parts[0]->text, parts[1]->text);
        return true;
      }
      case 'R':
      case 0x81: {
        const auto parts = pop_many(2);
        call(parts[0], parts[1]);
        return true;
      }
      case 0x92: {
        const auto parts = pop_many(3);
        call(parts[0], parts[1]);
        return true;
      }
      case 'b': {
        const PickledPtr state = pop();
        top().state = state;
        return true;
      }
      case 'Q': {
        auto value = make(Kind::kPersistent);
        value->items.push_back(pop());
        push(std::move(value));
        return true;
      }
      default:
        return false;
    }
  }

  bool run_stack(unsigned char code) {
    switch (code) {
      case 0x80:
        take(1);
        return true;
      case 0x95:
        take(8);
        return true;
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case '0':
        pop();
        return true;
      case '1':
        pop_to_mark();
        return true;
      case '2':
        top();
        push(stack_.back());
        return true;
      case 'q':
        remember(integer<uint8_t>());
        return true;
      case 'r':
        remember(integer<uint32_t>());
        return true;
      case 0x94:
        remember(memo_.size());
        return true;
      case 'h':
        recall(integer<uint8_t>());
        return true;
      case 'j':
        recall(integer<uint32_t>());
        return true;
      default:
        return false;
    }
  }

  std::string_view bytes_;
  const std::string& where_;
  size_t position_ = 0;
  std::vector<PickledPtr> stack_;
  std::vector<size_t> marks_;
  std::map<uint64_t, PickledPtr> memo_;
  std::shared_ptr<std::deque<Pickled>> objects_ = std::make_shared<std::deque<Pickled>>();
  size_t copied_ = 0;
};

}  // namespace

const Pickled* Pickled::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name->kind == Kind::kText && name->text == key) return value.get();
  return nullptr;
}

PickledPtr read_pickle(std::string_view bytes, const std::string& where) {
  return Machine(bytes, where).run();
}

}  // namespace sotto::models

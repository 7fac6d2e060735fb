#include "engine.h"

#include <algorithm>

#include "numbers.h"

namespace kvbench {

#define KVBENCH_DECLARE(name) const EngineInfo& engine_##name();
#define KVBENCH_LIST(name) &engine_##name(),
// KVBENCH_ENGINES is X(null) X(lmdb) ...: what the Makefile was asked for.
#define X KVBENCH_DECLARE
KVBENCH_ENGINES
#undef X

const std::vector<const EngineInfo*>& engines() {
#define X KVBENCH_LIST
  static const std::vector<const EngineInfo*> all = {KVBENCH_ENGINES};
#undef X
  return all;
}

const EngineInfo& engine_named(const std::string& name) {
  std::string known;
  for (const EngineInfo* engine : engines()) {
    if (name == engine->name) {
      return *engine;
    }
    known += known.empty() ? engine->name : std::string(", ") + engine->name;
  }
  throw UsageError("unknown engine '" + name + "'; this build has " + known);
}

std::uint64_t Settings::number(const std::string& name) const {
  return parse_unsigned("--engine_opt " + name, text(name));
}

bool Settings::flag(const std::string& name) const {
  return parse_flag("--engine_opt " + name, text(name));
}

const std::string& Settings::choice(const std::string& name,
                                    const std::vector<std::string>& known) const {
  const std::string& value = text(name);
  if (std::find(known.begin(), known.end(), value) != known.end()) {
    return value;
  }
  std::string list;
  for (const std::string& one : known) {
    list += (list.empty() ? "" : ", ") + one;
  }
  throw UsageError("--engine_opt " + name + "=" + value + " is none of " + list);
}

void Batch::add(std::string_view key, std::string_view value) {
  bytes_ += key;
  ends_.push_back(bytes_.size());
  bytes_ += value;
  ends_.push_back(bytes_.size());
}

std::vector<bool> Session::multi_get(const std::vector<std::string_view>& keys,
                                     std::vector<std::string>& values) {
  std::vector<bool> found(keys.size());
  for (std::size_t i = 0; i < keys.size(); i++) {
    found[i] = get(keys[i], values[i]);
  }
  return found;
}

}  // namespace kvbench

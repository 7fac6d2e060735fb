// Stores nothing and finds nothing: what is left is the cost of the driver itself.
// debian: none
#include "engine.h"

namespace kvbench {

namespace {

class NullCursor : public Cursor {
 public:
  bool first() override { return false; }
  bool last() override { return false; }
  bool seek(std::string_view /*key*/) override { return false; }
  bool next() override { return false; }
  bool previous() override { return false; }
  std::string_view key() override { return {}; }
  std::string_view value() override { return {}; }
};

class NullSession : public Session {
 public:
  void put(std::string_view /*key*/, std::string_view /*value*/) override {}
  void write(const Batch& /*batch*/) override {}
  void remove(std::string_view /*key*/) override {}
  bool get(std::string_view /*key*/, std::string& /*value*/) override { return false; }
  std::unique_ptr<Cursor> scan() override { return std::make_unique<NullCursor>(); }
};

class NullEngine : public Engine {
 public:
  std::unique_ptr<Session> session() override { return std::make_unique<NullSession>(); }
  void sync() override {}
  void compact() override {}
  std::string properties() override { return "null: stores nothing\n"; }
};

}  // namespace

const EngineInfo& engine_null() {
  static const EngineInfo info = {
      "null", "0", {}, [](const Settings&) -> std::unique_ptr<Engine> {
        return std::make_unique<NullEngine>();
      }};
  return info;
}

}  // namespace kvbench

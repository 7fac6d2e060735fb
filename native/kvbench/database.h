// The directory of a database, and the engine that has it open. Deletes only what is marked ours.
#pragma once

#include <memory>
#include <string>

#include "engine.h"

namespace kvbench {

class Database {
 public:
  Database(const EngineInfo& info, Settings settings);

  // Empty, whatever was there before.
  void create(bool sync);
  // As the last phase left it; opened again only when --sync changes for a phase.
  void reopen(bool sync);
  Engine& engine() { return *engine_; }
  void close() { engine_.reset(); }

 private:
  bool on_disk() const { return !settings_.path.empty(); }
  std::string marker_path() const { return settings_.path + "/KVBENCH"; }
  std::string marker_text() const;
  void check_marker() const;
  void clear();
  void open(bool create, bool sync);

  const EngineInfo& info_;
  Settings settings_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace kvbench

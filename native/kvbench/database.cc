#include "database.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

namespace kvbench {

namespace fs = std::filesystem;

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Database::Database(const EngineInfo& info, Settings settings)
    : info_(info), settings_(std::move(settings)) {}

std::string Database::marker_text() const {
  return std::string("engine ") + info_.name + "\nkey_size " + std::to_string(settings_.key_size) +
         (settings_.decimal_keys ? "\ndecimal_keys\n" : "\n");
}

void Database::check_marker() const {
  if (!fs::is_directory(settings_.path)) {
    throw UsageError("there is no database in " + settings_.path +
                     "; leave out --use_existing_db to make one");
  }
  const std::string found = content(marker_path());
  if (found != marker_text()) {
    throw UsageError(settings_.path + " is no database of engine " + info_.name + " with " +
                     (settings_.decimal_keys ? "decimal " : "") + "keys of " +
                     std::to_string(settings_.key_size) + " bytes made by this program");
  }
}

void Database::clear() {
  const fs::path path = settings_.path;
  if (fs::exists(path) && !fs::is_directory(path)) {
    throw UsageError(settings_.path + " is no directory");
  }
  if (fs::exists(path) && !fs::is_empty(path) && !fs::exists(marker_path())) {
    throw UsageError(settings_.path +
                     " is neither empty nor made by this program; it is left as it is");
  }
  fs::create_directories(path);
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.path() != marker_path()) {  // goes last: what is left by a crash is still ours
      fs::remove_all(entry.path());
    }
  }
  std::ofstream file(marker_path(), std::ios::trunc);
  file << marker_text();
  file.close();
  if (!file) {
    throw Failure("open", "cannot write " + marker_path());
  }
}

void Database::open(bool create, bool sync) {
  Settings settings = settings_;
  settings.create = create;
  settings.sync = sync;
  engine_ = info_.open(settings);
  settings_.sync = sync;
}

void Database::create(bool sync) {
  close();
  if (!on_disk()) {
    open(true, sync);
    return;
  }
  const bool was_there = fs::exists(settings_.path);
  clear();
  try {
    open(true, sync);
  } catch (const UsageError&) {
    if (!was_there) {  // what cannot be asked for leaves nothing behind
      fs::remove_all(settings_.path);
    }
    throw;
  }
}

void Database::reopen(bool sync) {
  if (engine_ != nullptr && sync == settings_.sync) {
    return;
  }
  close();
  if (on_disk()) {
    check_marker();
  }
  open(false, sync);
}

}  // namespace kvbench

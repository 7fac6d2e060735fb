// What an engine is to the driver. An engine is one file, engine_NAME.cc, that defines
// `const EngineInfo& engine_NAME()`; its first lines tell the Makefile what it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kvbench {

// An operation failed. Printed as "OPERATION error: MESSAGE", which benchrunner reads as a problem.
class Failure : public std::runtime_error {
 public:
  Failure(const std::string& operation, const std::string& message)
      : std::runtime_error(operation + " error: " + message) {}
};

// What was asked for cannot be: one line, exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A read gave what was never written: exit code 3.
class WrongValue : public Failure {
 public:
  explicit WrongValue(const std::string& message) : Failure("verify", message) {}
};

struct EngineOption {
  const char* name;
  const char* standard;  // the value when not given
  const char* meaning;
};

// How a database is opened.
struct Settings {
  std::string path;
  bool create = true;
  bool sync = false;  // a write has returned only when it survives a power failure
  std::uint64_t entries = 0;
  std::size_t key_size = 0;
  bool decimal_keys = false;
  std::size_t value_size = 0;
  unsigned sessions = 1;  // how many threads will have one at the same time
  std::map<std::string, std::string> options;  // every option of the engine, given or not

  const std::string& text(const std::string& name) const { return options.at(name); }
  std::uint64_t number(const std::string& name) const;  // 65536, 64k, 8m, 1g
  bool flag(const std::string& name) const;             // 0, 1, true, false
  const std::string& choice(const std::string& name, const std::vector<std::string>& known) const;
};

// Pairs that are written as one.
class Batch {
 public:
  void clear() { bytes_.clear(), ends_.clear(); }
  void add(std::string_view key, std::string_view value);
  std::size_t size() const { return ends_.size() / 2; }
  std::string_view key(std::size_t i) const { return part(2 * i); }
  std::string_view value(std::size_t i) const { return part(2 * i + 1); }

 private:
  std::string_view part(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

  std::string bytes_;
  std::vector<std::size_t> ends_;
};

// An ordered walk. Moves return whether there is an entry; key and value hold until the next move.
class Cursor {
 public:
  virtual ~Cursor() = default;
  virtual bool first() = 0;
  virtual bool last() = 0;
  virtual bool seek(std::string_view key) = 0;  // the first entry at or after the key
  virtual bool next() = 0;
  virtual bool previous() = 0;
  virtual std::string_view key() = 0;
  virtual std::string_view value() = 0;
};

// One thread's access. Every write is one transaction; every read sees all writes that returned.
class Session {
 public:
  virtual ~Session() = default;
  virtual void put(std::string_view key, std::string_view value) = 0;
  virtual void write(const Batch& batch) = 0;  // all or nothing
  virtual void remove(std::string_view key) = 0;  // a missing key is no error
  // Copies the value: an engine that could lend its memory is not excused from reading it.
  virtual bool get(std::string_view key, std::string& value) = 0;
  virtual std::unique_ptr<Cursor> scan() = 0;
  // Engines without a call of their own look the keys up one after the other.
  virtual std::vector<bool> multi_get(const std::vector<std::string_view>& keys,
                                      std::vector<std::string>& values);
};

class Engine {
 public:
  virtual ~Engine() = default;  // closes
  virtual std::unique_ptr<Session> session() = 0;  // called in the thread that will use it
  virtual void sync() = 0;     // everything written so far survives a power failure
  virtual void compact() = 0;
  virtual std::string properties() = 0;  // lines of text, for people
};

struct EngineInfo {
  const char* name;
  std::string version;
  std::vector<EngineOption> options;
  std::unique_ptr<Engine> (*open)(const Settings&);
};

const std::vector<const EngineInfo*>& engines();  // those compiled in
const EngineInfo& engine_named(const std::string& name);
const EngineInfo& engine_null();

}  // namespace kvbench

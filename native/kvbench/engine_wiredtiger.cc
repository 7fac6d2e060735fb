// WiredTiger: a B-tree, or with --engine_opt type=lsm a log-structured merge tree.
// debian: libwiredtiger-dev
// header: wiredtiger.h
// link: -lwiredtiger
#include <wiredtiger.h>

#include "engine.h"

namespace kvbench {

namespace {

constexpr const char* TABLE = "table:kv";

void check(const char* operation, int code) {
  if (code != 0) {
    throw Failure(operation, std::string("wiredtiger: ") + wiredtiger_strerror(code));
  }
}

std::string_view view(const WT_ITEM& item) {
  return {static_cast<const char*>(item.data), item.size};
}

WT_ITEM to_item(std::string_view text) {
  WT_ITEM item{};
  item.data = text.data();
  item.size = text.size();
  return item;
}

WT_CURSOR* open_cursor(WT_SESSION* session, const char* operation) {
  WT_CURSOR* cursor = nullptr;
  check(operation, session->open_cursor(session, TABLE, nullptr, "overwrite=true", &cursor));
  return cursor;
}

class TigerCursor : public Cursor {
 public:
  explicit TigerCursor(WT_SESSION* session) : cursor_(open_cursor(session, "scan")) {}
  TigerCursor(const TigerCursor&) = delete;
  TigerCursor& operator=(const TigerCursor&) = delete;
  ~TigerCursor() override { cursor_->close(cursor_); }

  bool first() override { return check("scan", cursor_->reset(cursor_)), next(); }
  bool last() override { return check("scan", cursor_->reset(cursor_)), previous(); }
  bool seek(std::string_view key) override {
    WT_ITEM k = to_item(key);
    int where = 0;
    cursor_->set_key(cursor_, &k);
    if (!there(cursor_->search_near(cursor_, &where))) {
      return false;
    }
    return where >= 0 || next();
  }
  bool next() override { return there(cursor_->next(cursor_)); }
  bool previous() override { return there(cursor_->prev(cursor_)); }
  std::string_view key() override {
    WT_ITEM item{};
    check("scan", cursor_->get_key(cursor_, &item));
    return view(item);
  }
  std::string_view value() override {
    WT_ITEM item{};
    check("scan", cursor_->get_value(cursor_, &item));
    return view(item);
  }

 private:
  static bool there(int code) {
    if (code != WT_NOTFOUND) {
      check("scan", code);
    }
    return code == 0;
  }

  WT_CURSOR* cursor_;
};

class TigerSession : public Session {
 public:
  explicit TigerSession(WT_CONNECTION* connection) {
    check("open", connection->open_session(connection, nullptr, nullptr, &session_));
    try {
      cursor_ = open_cursor(session_, "open");
    } catch (...) {
      session_->close(session_, nullptr);
      throw;
    }
  }
  TigerSession(const TigerSession&) = delete;
  TigerSession& operator=(const TigerSession&) = delete;
  ~TigerSession() override { session_->close(session_, nullptr); }

  // WT_ROLLBACK says that another thread wrote the same key at the same time: do it again.
  void put(std::string_view key, std::string_view value) override {
    int code = WT_ROLLBACK;
    while (code == WT_ROLLBACK) {
      code = insert(key, value);
    }
    check("put", code);
  }
  void write(const Batch& batch) override {
    int code = WT_ROLLBACK;
    while (code == WT_ROLLBACK) {
      check("write", session_->begin_transaction(session_, nullptr));
      code = 0;
      for (std::size_t i = 0; i < batch.size() && code == 0; i++) {
        code = insert(batch.key(i), batch.value(i));
      }
      const int ended = code == 0 ? session_->commit_transaction(session_, nullptr)
                                  : session_->rollback_transaction(session_, nullptr);
      check("write", ended);
    }
    check("write", code);
  }
  void remove(std::string_view key) override {
    int code = WT_ROLLBACK;
    while (code == WT_ROLLBACK) {
      WT_ITEM k = to_item(key);
      cursor_->set_key(cursor_, &k);
      code = cursor_->remove(cursor_);
    }
    if (code != WT_NOTFOUND) {
      check("delete", code);
    }
  }
  bool get(std::string_view key, std::string& value) override {
    WT_ITEM k = to_item(key);
    cursor_->set_key(cursor_, &k);
    const int code = cursor_->search(cursor_);
    if (code == WT_NOTFOUND) {
      return false;
    }
    check("get", code);
    WT_ITEM item{};
    check("get", cursor_->get_value(cursor_, &item));
    value.assign(view(item));
    check("get", cursor_->reset(cursor_));
    return true;
  }
  std::unique_ptr<Cursor> scan() override { return std::make_unique<TigerCursor>(session_); }

 private:
  int insert(std::string_view key, std::string_view value) {
    WT_ITEM k = to_item(key);
    WT_ITEM v = to_item(value);
    cursor_->set_key(cursor_, &k);
    cursor_->set_value(cursor_, &v);
    return cursor_->insert(cursor_);
  }

  WT_SESSION* session_ = nullptr;
  WT_CURSOR* cursor_ = nullptr;
};

class TigerEngine : public Engine {
 public:
  explicit TigerEngine(const Settings& s) {
    const std::string type = s.choice("type", {"file", "lsm"});
    const std::string config = std::string(s.create ? "create," : "") +
                               "cache_size=" + std::to_string(s.number("cache_size")) +
                               ",session_max=" + std::to_string(2 * s.sessions + 64) +
                               ",log=(enabled=true,compressor=\"\"),checkpoint=(wait=" +
                               std::to_string(s.number("checkpoint_s")) +
                               "),transaction_sync=(enabled=" + (s.sync ? "true" : "false") +
                               ",method=fsync)";
    check("open", wiredtiger_open(s.path.c_str(), nullptr, config.c_str(), &connection_));
    try {
      check("open", connection_->open_session(connection_, nullptr, nullptr, &session_));
      if (s.create) {
        const std::string table = "key_format=u,value_format=u,type=" + type;
        check("open", session_->create(session_, TABLE, table.c_str()));
      }
    } catch (...) {
      connection_->close(connection_, nullptr);
      throw;
    }
  }
  TigerEngine(const TigerEngine&) = delete;
  TigerEngine& operator=(const TigerEngine&) = delete;
  ~TigerEngine() override { connection_->close(connection_, nullptr); }

  std::unique_ptr<Session> session() override {
    return std::make_unique<TigerSession>(connection_);
  }
  void sync() override { check("sync", session_->log_flush(session_, "sync=on")); }
  void compact() override { check("compact", session_->compact(session_, TABLE, nullptr)); }
  std::string properties() override {
    // Only now: counting costs the operations that are measured something.
    check("stats", connection_->reconfigure(connection_, "statistics=(fast)"));
    WT_CURSOR* cursor = nullptr;
    check("stats", session_->open_cursor(session_, "statistics:", nullptr,
                                         "statistics=(fast)", &cursor));
    std::string text;
    const char* description = nullptr;
    const char* printed = nullptr;
    int64_t value = 0;
    while (cursor->next(cursor) == 0 &&
           cursor->get_value(cursor, &description, &printed, &value) == 0) {
      text += std::string("wiredtiger: ") + description + ": " + printed + "\n";
    }
    cursor->close(cursor);
    check("stats", connection_->reconfigure(connection_, "statistics=(none)"));
    return text;
  }

 private:
  WT_CONNECTION* connection_ = nullptr;
  WT_SESSION* session_ = nullptr;
};

}  // namespace

const EngineInfo& engine_wiredtiger() {
  static const EngineInfo info = {
      "wiredtiger",
      std::to_string(WIREDTIGER_VERSION_MAJOR) + "." + std::to_string(WIREDTIGER_VERSION_MINOR) +
          "." + std::to_string(WIREDTIGER_VERSION_PATCH),
      {{"type", "file", "file (a B-tree) or lsm"},
       {"cache_size", "100m", "cache, bytes"},
       {"checkpoint_s", "60", "seconds between checkpoints; 0: only at the end"}},
      [](const Settings& settings) -> std::unique_ptr<Engine> {
        return std::make_unique<TigerEngine>(settings);
      }};
  return info;
}

}  // namespace kvbench

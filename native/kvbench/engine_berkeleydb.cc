// Berkeley DB: a B-tree with transactions, a log and locks on pages.
// debian: libdb-dev
// header: db.h
// link: -ldb
#include <db.h>

#include <string>

#include "engine.h"

namespace kvbench {

namespace {

// Page locks conflict: who loses is told DB_LOCK_DEADLOCK and tries again.
constexpr int MAX_ATTEMPTS = 1000;
constexpr u_int32_t GIB = 1U << 30;

void check(const char* operation, int code) {
  if (code != 0) {
    throw Failure(operation, std::string("berkeleydb: ") + db_strerror(code));
  }
}

DBT to_dbt(std::string_view text) {
  DBT dbt{};
  // The library takes no pointer to const; it does not write to what it is given.
  dbt.data = const_cast<char*>(text.data());
  dbt.size = static_cast<u_int32_t>(text.size());
  return dbt;
}

// Memory of ours that the library copies into, grown when it asks for more.
class Output {
 public:
  DBT* prepare() {
    dbt_ = DBT{};
    dbt_.flags = DB_DBT_USERMEM;
    dbt_.data = buffer_.data();
    dbt_.ulen = static_cast<u_int32_t>(buffer_.size());
    return &dbt_;
  }
  bool grow(int code) {
    if (code != DB_BUFFER_SMALL || dbt_.size <= buffer_.size()) {
      return false;
    }
    buffer_.resize(dbt_.size);
    return true;
  }
  std::string_view view() const { return {buffer_.data(), dbt_.size}; }

 private:
  std::string buffer_ = std::string(4096, '\0');
  DBT dbt_{};
};

class BerkeleyCursor : public Cursor {
 public:
  explicit BerkeleyCursor(DB* db) {
    check("scan", db->cursor(db, nullptr, &cursor_, DB_READ_COMMITTED));
  }
  BerkeleyCursor(const BerkeleyCursor&) = delete;
  BerkeleyCursor& operator=(const BerkeleyCursor&) = delete;
  ~BerkeleyCursor() override { cursor_->close(cursor_); }

  bool first() override { return move(DB_FIRST, {}); }
  bool last() override { return move(DB_LAST, {}); }
  bool seek(std::string_view key) override { return move(DB_SET_RANGE, key); }
  bool next() override { return move(DB_NEXT, {}); }
  bool previous() override { return move(DB_PREV, {}); }
  std::string_view key() override { return key_.view(); }
  std::string_view value() override { return value_.view(); }

 private:
  bool move(u_int32_t how, std::string_view wanted) {
    for (int attempt = 0;; attempt++) {
      DBT* key = key_.prepare();
      DBT* value = value_.prepare();
      if (!wanted.empty()) {
        std::string_view(wanted).copy(static_cast<char*>(key->data), key->ulen);
        key->size = static_cast<u_int32_t>(wanted.size());
      }
      const int code = cursor_->get(cursor_, key, value, how);
      if (code == 0 || code == DB_NOTFOUND) {
        return code == 0;
      }
      const bool grown = key_.grow(code) || value_.grow(code);
      if (!grown && (code != DB_LOCK_DEADLOCK || attempt == MAX_ATTEMPTS)) {
        check("scan", code);
      }
    }
  }

  DBC* cursor_ = nullptr;
  Output key_;
  Output value_;
};

class BerkeleySession : public Session {
 public:
  BerkeleySession(DB_ENV* env, DB* db) : env_(env), db_(db) {}

  void put(std::string_view key, std::string_view value) override {
    attempt("put", [&](DB_TXN* txn) { return put_in(txn, key, value); });
  }
  void write(const Batch& batch) override {
    attempt("write", [&](DB_TXN* txn) {
      int code = 0;
      for (std::size_t i = 0; i < batch.size() && code == 0; i++) {
        code = put_in(txn, batch.key(i), batch.value(i));
      }
      return code;
    });
  }
  void remove(std::string_view key) override {
    attempt("delete", [&](DB_TXN* txn) {
      DBT k = to_dbt(key);
      const int code = db_->del(db_, txn, &k, 0);
      return code == DB_NOTFOUND ? 0 : code;
    });
  }
  bool get(std::string_view key, std::string& value) override {
    for (int attempt = 0;; attempt++) {
      DBT k = to_dbt(key);
      const int code = db_->get(db_, nullptr, &k, output_.prepare(), DB_READ_COMMITTED);
      if (code == 0) {
        value.assign(output_.view());
      }
      if (code == 0 || code == DB_NOTFOUND) {
        return code == 0;
      }
      if (!output_.grow(code) && (code != DB_LOCK_DEADLOCK || attempt == MAX_ATTEMPTS)) {
        check("get", code);
      }
    }
  }
  std::unique_ptr<Cursor> scan() override { return std::make_unique<BerkeleyCursor>(db_); }

 private:
  int put_in(DB_TXN* txn, std::string_view key, std::string_view value) {
    DBT k = to_dbt(key);
    DBT v = to_dbt(value);
    return db_->put(db_, txn, &k, &v, 0);
  }

  template <typename Work>
  void attempt(const char* operation, Work work) {
    for (int attempt = 0;; attempt++) {
      DB_TXN* txn = nullptr;
      check(operation, env_->txn_begin(env_, nullptr, &txn, 0));
      const int code = work(txn);
      if (code == 0) {
        check(operation, txn->commit(txn, 0));
        return;
      }
      txn->abort(txn);
      if (code != DB_LOCK_DEADLOCK || attempt == MAX_ATTEMPTS) {
        check(operation, code);
      }
    }
  }

  DB_ENV* env_;
  DB* db_;
  Output output_;
};

class BerkeleyEngine : public Engine {
 public:
  explicit BerkeleyEngine(const Settings& s) {
    try {
      open(s);
    } catch (...) {
      close();
      throw;
    }
  }
  BerkeleyEngine(const BerkeleyEngine&) = delete;
  BerkeleyEngine& operator=(const BerkeleyEngine&) = delete;
  ~BerkeleyEngine() override { close(); }

  std::unique_ptr<Session> session() override {
    return std::make_unique<BerkeleySession>(env_, db_);
  }
  void sync() override {
    check("sync", env_->log_flush(env_, nullptr));
    check("sync", env_->txn_checkpoint(env_, 0, 0, DB_FORCE));
  }
  void compact() override {
    check("compact", db_->compact(db_, nullptr, nullptr, nullptr, nullptr, DB_FREE_SPACE, nullptr));
  }
  std::string properties() override {
    DB_BTREE_STAT* stat = nullptr;
    check("stats", db_->stat(db_, nullptr, &stat, 0));
    std::string text = "berkeleydb: keys " + std::to_string(stat->bt_nkeys) + ", pages " +
                       std::to_string(stat->bt_pagecnt) + ", page size " +
                       std::to_string(stat->bt_pagesize) + ", levels " +
                       std::to_string(stat->bt_levels) + "\n";
    free(stat);
    return text;
  }

 private:
  void open(const Settings& s) {
    check("open", db_env_create(&env_, 0));
    env_->set_errfile(env_, nullptr);
    const std::uint64_t cache = s.number("cache_size");
    check("open", env_->set_cachesize(env_, static_cast<u_int32_t>(cache / GIB),
                                      static_cast<u_int32_t>(cache % GIB), 1));
    check("open", env_->set_lk_detect(env_, DB_LOCK_DEFAULT));
    check("open", env_->set_lk_max_locks(env_, MAX_LOCKS));
    check("open", env_->set_lk_max_objects(env_, MAX_LOCKS));
    check("open", env_->set_lk_max_lockers(env_, MAX_LOCKS));
    check("open", env_->set_tx_max(env_, 2 * s.sessions + 16));
    check("open", env_->log_set_config(env_, DB_LOG_AUTO_REMOVE, 1));
    if (!s.sync) {
      check("open", env_->set_flags(env_, DB_TXN_NOSYNC, 1));
    }
    const u_int32_t parts = DB_INIT_MPOOL | DB_INIT_LOCK | DB_INIT_LOG | DB_INIT_TXN;
    check("open", env_->open(env_, s.path.c_str(),
                             parts | DB_CREATE | DB_THREAD | DB_RECOVER | DB_PRIVATE, 0644));
    check("open", db_create(&db_, env_, 0));
    check("open", db_->set_pagesize(db_, static_cast<u_int32_t>(s.number("page_size"))));
    const u_int32_t create = s.create ? DB_CREATE : 0;
    check("open", db_->open(db_, nullptr, "data.db", nullptr, DB_BTREE,
                            create | DB_AUTO_COMMIT | DB_THREAD, 0644));
  }
  void close() {
    if (db_ != nullptr) {
      db_->close(db_, 0);
    }
    if (env_ != nullptr) {
      env_->txn_checkpoint(env_, 0, 0, 0);
      env_->close(env_, 0);
    }
  }

  static constexpr u_int32_t MAX_LOCKS = 100'000;  // a batch locks every page it touches

  DB_ENV* env_ = nullptr;
  DB* db_ = nullptr;
};

}  // namespace

const EngineInfo& engine_berkeleydb() {
  static const EngineInfo info = {
      "berkeleydb",
      std::to_string(DB_VERSION_MAJOR) + "." + std::to_string(DB_VERSION_MINOR) + "." +
          std::to_string(DB_VERSION_PATCH),
      {{"cache_size", "32m", "page cache, bytes"}, {"page_size", "4k", "bytes"}},
      [](const Settings& settings) -> std::unique_ptr<Engine> {
        return std::make_unique<BerkeleyEngine>(settings);
      }};
  return info;
}

}  // namespace kvbench

// TokuDB (PerconaFT): a tree whose inner nodes buffer writes, with transactions, a log and locks on
// keys. Its functions are named as Berkeley DB's: a build has one of the two.
// header: tokudb.h
// link: -ltokufractaltree_static -ltokuportability_static -lz -ldl
#include <tokudb.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <numeric>

#include "engine.h"

// Not in the installed header: the server that loads the library calls it.
int toku_ydb_init();

namespace kvbench {

namespace {

// Key locks conflict: who waits too long, or for somebody who waits for it, tries again.
constexpr int MAX_ATTEMPTS = 1000;
constexpr std::uint64_t LOCK_WAIT_MS = 4000;
constexpr std::uint64_t GIB = std::uint64_t{1} << 30;
constexpr std::size_t MAX_FETCH_BYTES = 128 * 1024;

thread_local std::string last_error;  // what the library says beyond its error code

void check(const char* operation, int code) {
  if (code != 0) {
    std::string text = std::string("tokudb: ") + db_strerror(code);
    text += last_error.empty() ? "" : ": " + last_error;
    text += code == ENOSPC ? "; it stops writing when 5 % of the file system are left" : "";
    last_error.clear();
    throw Failure(operation, text);
  }
}

void keep_error(const DB_ENV*, const char*, const char* message) {
  last_error = message;
  while (!last_error.empty() && last_error.back() == '\n') {
    last_error.pop_back();
  }
}

// The library meets damage with abort(), having said where.
void aborted(int) {
  constexpr std::string_view text = "database error: tokudb: the library gave up, see above\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(1);
}

DBT to_dbt(std::string_view text) {
  DBT dbt{};
  // The library takes no pointer to const; it does not write to what it is given.
  dbt.data = const_cast<char*>(text.data());
  dbt.size = static_cast<std::uint32_t>(text.size());
  return dbt;
}

std::string_view to_view(const DBT& dbt) { return {static_cast<const char*>(dbt.data), dbt.size}; }

// Aborted unless committed.
class Transaction {
 public:
  Transaction(DB_ENV* env, const char* operation, std::uint32_t flags) : operation_(operation) {
    check(operation, env->txn_begin(env, nullptr, &txn_, flags));
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (txn_ != nullptr) {
      txn_->abort(txn_);
    }
  }

  DB_TXN* get() { return txn_; }
  void commit(std::uint32_t flags) {
    DB_TXN* txn = txn_;
    txn_ = nullptr;  // commit frees it, failing or not
    check(operation_, txn->commit(txn, flags));
  }

 private:
  const char* operation_;
  DB_TXN* txn_ = nullptr;
};

constexpr std::uint32_t READING = DB_TXN_SNAPSHOT | DB_TXN_READ_ONLY;

// Moves in one direction fetch more and more entries at a time, as a server's scan does.
class TokuCursor : public Cursor {
 public:
  TokuCursor(DB_ENV* env, DB* db) : txn_(env, "scan", READING) {
    check("scan", db->cursor(db, txn_.get(), &cursor_, 0));
  }
  TokuCursor(const TokuCursor&) = delete;
  TokuCursor& operator=(const TokuCursor&) = delete;
  ~TokuCursor() override { cursor_->c_close(cursor_); }

  bool first() override { return jump(cursor_->c_getf_first(cursor_, 0, take_one, this)); }
  bool last() override { return jump(cursor_->c_getf_last(cursor_, 0, take_one, this)); }
  bool seek(std::string_view key) override {
    DBT k = to_dbt(key);
    return jump(cursor_->c_getf_set_range(cursor_, 0, &k, take_one, this));
  }
  bool next() override { return step(true); }
  bool previous() override { return step(false); }
  std::string_view key() override { return entries_.key(at_); }
  std::string_view value() override { return entries_.value(at_); }

 private:
  static int take_one(const DBT* key, const DBT* value, void* self) {
    Batch& entries = static_cast<TokuCursor*>(self)->entries_;
    entries.clear();
    entries.add(to_view(*key), to_view(*value));
    return 0;
  }
  static int take_more(const DBT* key, const DBT* value, void* self) {
    TokuCursor& cursor = *static_cast<TokuCursor*>(self);
    cursor.entries_.add(to_view(*key), to_view(*value));
    cursor.fetched_bytes_ += key->size + value->size;
    return cursor.fetched_bytes_ < cursor.fetch_bytes_ ? TOKUDB_CURSOR_CONTINUE : 0;
  }

  bool jump(int code) {
    at_ = 0;
    fetch_bytes_ = 0;
    return found(code);
  }
  bool step(bool forward) {
    if (forward == forward_ && at_ + 1 < entries_.size()) {
      at_++;
      return true;
    }
    if (forward != forward_) {
      forward_ = forward;
      if (at_ + 1 < entries_.size() && !seek(std::string(key()))) {
        return false;
      }
      fetch_bytes_ = 0;
    }
    fetched_bytes_ = 0;
    fetch_bytes_ = std::min(MAX_FETCH_BYTES, 2 * fetch_bytes_ + 256);
    entries_.clear();
    at_ = 0;
    return found(forward ? cursor_->c_getf_next(cursor_, 0, take_more, this)
                         : cursor_->c_getf_prev(cursor_, 0, take_more, this));
  }
  static bool found(int code) {
    if (code != DB_NOTFOUND) {
      check("scan", code);
    }
    return code == 0;
  }

  Transaction txn_;  // its end comes after the cursor's
  DBC* cursor_ = nullptr;
  Batch entries_;  // as fetched
  std::size_t at_ = 0;
  std::size_t fetch_bytes_ = 0;
  std::size_t fetched_bytes_ = 0;
  bool forward_ = true;
};

class TokuSession : public Session {
 public:
  TokuSession(DB_ENV* env, DB* db, bool sync)
      : env_(env), db_(db), commit_(sync ? DB_TXN_SYNC : DB_TXN_NOSYNC) {}

  void put(std::string_view key, std::string_view value) override {
    attempt("put", [&](DB_TXN* txn, bool) { return put_in(txn, key, value); });
  }
  void write(const Batch& batch) override {
    order_.resize(batch.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    const auto by_key = [&](std::size_t a, std::size_t b) { return batch.key(a) < batch.key(b); };
    attempt("write", [&](DB_TXN* txn, bool again) {
      if (again) {  // those who lock in one order wait for each other in no circle
        std::stable_sort(order_.begin(), order_.end(), by_key);
      }
      int code = 0;
      for (std::size_t i = 0; i < batch.size() && code == 0; i++) {
        code = put_in(txn, batch.key(order_[i]), batch.value(order_[i]));
      }
      return code;
    });
  }
  // Without DB_DELETE_ANY the library would look whether the key is there.
  void remove(std::string_view key) override {
    attempt("delete", [&](DB_TXN* txn, bool) {
      DBT k = to_dbt(key);
      return db_->del(db_, txn, &k, DB_DELETE_ANY);
    });
  }
  bool get(std::string_view key, std::string& value) override {
    const auto copy = [](const DBT*, const DBT* found, void* to) {
      static_cast<std::string*>(to)->assign(to_view(*found));
      return 0;
    };
    Transaction txn(env_, "get", READING);
    DBT k = to_dbt(key);
    const int code = db_->getf_set(db_, txn.get(), 0, &k, copy, &value);
    if (code != DB_NOTFOUND) {
      check("get", code);
    }
    txn.commit(0);
    return code == 0;
  }
  std::unique_ptr<Cursor> scan() override { return std::make_unique<TokuCursor>(env_, db_); }

 private:
  int put_in(DB_TXN* txn, std::string_view key, std::string_view value) {
    DBT k = to_dbt(key);
    DBT v = to_dbt(value);
    return db_->put(db_, txn, &k, &v, 0);
  }

  template <typename Work>
  void attempt(const char* operation, Work work) {
    for (int attempt = 0;; attempt++) {
      Transaction txn(env_, operation, 0);
      const int code = work(txn.get(), attempt > 0);
      if (code == 0) {
        txn.commit(commit_);
        return;
      }
      const bool conflict = code == DB_LOCK_DEADLOCK || code == DB_LOCK_NOTGRANTED;
      if (!conflict || attempt == MAX_ATTEMPTS) {
        check(operation, code);
      }
    }
  }

  DB_ENV* env_;
  DB* db_;
  std::uint32_t commit_;
  std::vector<std::size_t> order_;  // of a batch's pairs
};

class TokuEngine : public Engine {
 public:
  explicit TokuEngine(const Settings& s) : sync_(s.sync) {
    start_library();
    try {
      open_environment(s);
      open_database(s);
    } catch (...) {
      close();
      throw;
    }
  }
  TokuEngine(const TokuEngine&) = delete;
  TokuEngine& operator=(const TokuEngine&) = delete;
  ~TokuEngine() override { close(); }

  std::unique_ptr<Session> session() override {
    return std::make_unique<TokuSession>(env_, db_, sync_);
  }
  void sync() override { check("sync", env_->log_flush(env_, nullptr)); }
  // Pushes every buffered write down into the leaves: what OPTIMIZE TABLE does.
  void compact() override {
    std::uint64_t rounds = 0;
    const auto go_on = [](void*, float) { return 0; };
    check("compact", db_->optimize(db_));
    check("compact", db_->hot_optimize(db_, nullptr, nullptr, go_on, nullptr, &rounds));
  }
  std::string properties() override {
    DB_BTREE_STAT64 stat{};
    check("stats", db_->stat64(db_, nullptr, &stat));
    std::string text = "tokudb: keys about " + std::to_string(stat.bt_nkeys) + ", data " +
                       std::to_string(stat.bt_dsize) + " bytes, file " +
                       std::to_string(stat.bt_fsize) + " bytes\n";
    std::string status(STATUS_BYTES, '\0');
    check("stats", env_->get_engine_status_text(env_, status.data(), STATUS_BYTES));
    return text + status.c_str();
  }

 private:
  static void start_library() {
    static const int code = [] {
      std::signal(SIGABRT, aborted);
      return toku_ydb_init();
    }();
    check("open", code);
  }

  void open_environment(const Settings& s) {
    db_env_set_direct_io(s.flag("direct_io"));
    check("open", db_env_create(&env_, 0));
    env_->set_errcall(env_, keep_error);
    env_->set_check_thp(env_, false);  // else it refuses where transparent huge pages are "always"
    const std::uint64_t cache = s.number("cache_size");
    check("open", env_->set_cachesize(env_, static_cast<std::uint32_t>(cache / GIB),
                                      static_cast<std::uint32_t>(cache % GIB), 1));
    check("open", env_->set_lock_timeout(env_, LOCK_WAIT_MS, nullptr));
    set_threads(static_cast<std::uint32_t>(s.number("background_threads")));
    const std::uint32_t parts = DB_INIT_MPOOL | DB_INIT_LOCK | DB_INIT_LOG | DB_INIT_TXN;
    check("open", env_->open(env_, s.path.c_str(),
                             parts | DB_CREATE | DB_THREAD | DB_RECOVER | DB_PRIVATE, 0644));
    // The library's own values are 0: never. These are the server's.
    check("open", env_->checkpointing_set_period(
                      env_, static_cast<std::uint32_t>(s.number("checkpoint_period"))));
    check("open", env_->cleaner_set_period(env_, 1));
    check("open", env_->cleaner_set_iterations(env_, 5));
  }
  void set_threads(std::uint32_t count) {
    if (count != 0) {  // in the proportions that the library has for that many processors
      check("open", env_->set_client_pool_threads(env_, count));
      check("open", env_->set_cachetable_pool_threads(env_, 2 * count));
      check("open", env_->set_checkpoint_pool_threads(env_, std::max(1U, count / 4)));
    }
  }
  void open_database(const Settings& s) {
    check("open", db_create(&db_, env_, 0));
    check("open", db_->set_pagesize(db_, static_cast<std::uint32_t>(s.number("page_size"))));
    check("open",
          db_->set_readpagesize(db_, static_cast<std::uint32_t>(s.number("read_page_size"))));
    check("open", db_->set_compression_method(db_, compression(s)));
    check("open", db_->open(db_, nullptr, "data", nullptr, DB_BTREE, s.create ? DB_CREATE : 0,
                            0644));
  }
  static TOKU_COMPRESSION_METHOD compression(const Settings& s) {
    const std::string& name =
        s.choice("compression", {"none", "snappy", "quicklz", "zlib", "lzma"});
    return name == "none"      ? TOKU_NO_COMPRESSION
           : name == "snappy"  ? TOKU_SNAPPY_METHOD
           : name == "quicklz" ? TOKU_QUICKLZ_METHOD
           : name == "zlib"    ? TOKU_ZLIB_METHOD
                               : TOKU_LZMA_METHOD;
  }
  void close() {
    if (db_ != nullptr) {
      db_->close(db_, 0);
    }
    if (env_ != nullptr) {
      env_->close(env_, 0);
    }
  }

  static constexpr int STATUS_BYTES = 1 << 20;

  bool sync_;
  DB_ENV* env_ = nullptr;
  DB* db_ = nullptr;
};

}  // namespace

const EngineInfo& engine_tokudb() {
  static const EngineInfo info = {
      "tokudb",
      std::to_string(DB_VERSION_MAJOR) + "." + std::to_string(DB_VERSION_MINOR) + "." +
          std::to_string(DB_VERSION_PATCH),
      {{"cache_size", "128m", "nodes of the tree in memory, bytes"},
       {"page_size", "4m", "node of the tree, bytes"},
       {"read_page_size", "128k", "part of a leaf that is read by itself, bytes"},
       {"compression", "none", "none, snappy, quicklz, zlib or lzma"},
       {"checkpoint_period", "60", "seconds between checkpoints; 0: only at the end"},
       {"background_threads", "0", "as if there were that many processors; 0: as there are"},
       {"direct_io", "0", "1: read and write nodes around the page cache"}},
      [](const Settings& settings) -> std::unique_ptr<Engine> {
        return std::make_unique<TokuEngine>(settings);
      }};
  return info;
}

}  // namespace kvbench

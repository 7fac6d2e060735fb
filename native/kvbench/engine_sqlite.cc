// SQLite: one table, the key is its primary key; a connection for each thread.
// debian: libsqlite3-dev
// header: sqlite3.h
// link: -lsqlite3
#include <sqlite3.h>

#include "engine.h"
#include "keys.h"

namespace kvbench {

namespace {

constexpr int BUSY_TIMEOUT_MS = 60'000;

[[noreturn]] void fail(sqlite3* db, const char* operation) {
  throw Failure(operation, std::string("sqlite: ") +
                               (db == nullptr ? "out of memory" : sqlite3_errmsg(db)));
}

// With keys=integer a key of eight bytes is the row's number: a row then is a cell of the table
// itself, where up to a page fits. Otherwise it is an entry of an index, and one that takes more
// than a quarter of a page gets pages of its own.
bool has_integer_keys(const Settings& s) {
  const bool integer = s.choice("keys", {"blob", "integer"}) == "integer";
  if (integer && s.key_size != sizeof(std::int64_t)) {
    throw UsageError("keys=integer needs --key_size=8, not " + std::to_string(s.key_size));
  }
  return integer;
}

class Connection {
 public:
  Connection(const Settings& s, bool create) : integer_keys_(has_integer_keys(s)) {
    const std::string file = s.path + "/data.sqlite";
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                      (create ? SQLITE_OPEN_CREATE : 0);
    const int code = sqlite3_open_v2(file.c_str(), &db_, flags, nullptr);
    if (code != SQLITE_OK) {
      const std::string why = db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_);
      sqlite3_close(db_);
      throw Failure("open", "sqlite: " + why);
    }
    sqlite3_busy_timeout(db_, BUSY_TIMEOUT_MS);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { sqlite3_close(db_); }

  sqlite3* get() const { return db_; }
  bool integer_keys() const { return integer_keys_; }
  void execute(const char* operation, const std::string& sql) {
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      fail(db_, operation);
    }
  }

 private:
  bool integer_keys_;
  sqlite3* db_ = nullptr;
};

// Prepared once. A step that found no row, or the end of one's use, resets it: a statement that is
// not reset keeps its lock.
class Statement {
 public:
  Statement(const Connection& connection, const char* operation, const char* sql)
      : db_(connection.get()), operation_(operation), integer_keys_(connection.integer_keys()) {
    if (sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr) !=
        SQLITE_OK) {
      fail(db_, operation_);
    }
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  void bind(int index, std::string_view bytes) {
    if (sqlite3_bind_blob64(statement_, index, bytes.data(), bytes.size(), SQLITE_STATIC) !=
        SQLITE_OK) {
      fail(db_, operation_);
    }
  }
  void bind_key(int index, std::string_view key) {
    if (!integer_keys_) {
      bind(index, key);
      return;
    }
    // A key of another size is in no such table: nothing equals NULL.
    const bool fits = key.size() == sizeof(std::int64_t);
    const int code = fits ? sqlite3_bind_int64(statement_, index,
                                               static_cast<std::int64_t>(decode_key(key)))
                          : sqlite3_bind_null(statement_, index);
    if (code != SQLITE_OK) {
      fail(db_, operation_);
    }
  }
  bool step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) {
      return true;
    }
    if (code != SQLITE_DONE) {
      // The message belongs to the connection; resetting would keep it, but order is easy to have.
      const std::string why = sqlite3_errmsg(db_);
      sqlite3_reset(statement_);
      throw Failure(operation_, "sqlite: " + why);
    }
    sqlite3_reset(statement_);
    return false;
  }
  void reset() { sqlite3_reset(statement_); }
  std::string_view column(int index) {
    const void* bytes = sqlite3_column_blob(statement_, index);
    const int size = sqlite3_column_bytes(statement_, index);
    return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
  }
  std::string_view key() {
    if (!integer_keys_) {
      return column(0);
    }
    return key_.encode(static_cast<std::uint64_t>(sqlite3_column_int64(statement_, 0)));
  }

 private:
  sqlite3* db_;
  const char* operation_;
  bool integer_keys_;
  KeyBuffer key_{KeyForm{sizeof(std::int64_t)}};
  sqlite3_stmt* statement_ = nullptr;
};

// A statement goes one way; turning round starts another one at the key it stands on.
class SqliteCursor : public Cursor {
 public:
  explicit SqliteCursor(const Connection& connection) : connection_(connection) {}

  bool first() override { return start("SELECT k, v FROM kv ORDER BY k", {}, true); }
  bool last() override { return start("SELECT k, v FROM kv ORDER BY k DESC", {}, false); }
  bool seek(std::string_view key) override {
    return start("SELECT k, v FROM kv WHERE k >= ?1 ORDER BY k", std::string(key), true);
  }
  bool next() override {
    return forward_ ? statement_->step()
                    : start("SELECT k, v FROM kv WHERE k > ?1 ORDER BY k", std::string(key()),
                            true);
  }
  bool previous() override {
    return !forward_ ? statement_->step()
                     : start("SELECT k, v FROM kv WHERE k < ?1 ORDER BY k DESC",
                             std::string(key()), false);
  }
  std::string_view key() override { return statement_->key(); }
  std::string_view value() override { return statement_->column(1); }

 private:
  bool start(const char* sql, std::string key, bool forward) {
    statement_ = std::make_unique<Statement>(connection_, "scan", sql);
    bound_ = std::move(key);
    forward_ = forward;
    if (!bound_.empty()) {
      statement_->bind_key(1, bound_);
    }
    return statement_->step();
  }

  const Connection& connection_;
  std::unique_ptr<Statement> statement_;
  std::string bound_;
  bool forward_ = true;
};

const char* const PUT = "INSERT INTO kv (k, v) VALUES (?1, ?2) "
                        "ON CONFLICT (k) DO UPDATE SET v = excluded.v";

class SqliteSession : public Session {
 public:
  explicit SqliteSession(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)),
        put_(*connection_, "put", PUT),
        get_(*connection_, "get", "SELECT v FROM kv WHERE k = ?1"),
        remove_(*connection_, "delete", "DELETE FROM kv WHERE k = ?1"),
        begin_(*connection_, "write", "BEGIN IMMEDIATE"),
        commit_(*connection_, "write", "COMMIT") {}

  void put(std::string_view key, std::string_view value) override {
    put_.bind_key(1, key);
    put_.bind(2, value);
    put_.step();
  }
  void write(const Batch& batch) override {
    begin_.step();
    for (std::size_t i = 0; i < batch.size(); i++) {
      put(batch.key(i), batch.value(i));
    }
    commit_.step();
  }
  void remove(std::string_view key) override {
    remove_.bind_key(1, key);
    remove_.step();
  }
  bool get(std::string_view key, std::string& value) override {
    get_.bind_key(1, key);
    if (!get_.step()) {
      return false;
    }
    value.assign(get_.column(0));
    get_.reset();
    return true;
  }
  std::unique_ptr<Cursor> scan() override { return std::make_unique<SqliteCursor>(*connection_); }

 private:
  std::unique_ptr<Connection> connection_;
  Statement put_;
  Statement get_;
  Statement remove_;
  Statement begin_;
  Statement commit_;
};

class SqliteEngine : public Engine {
 public:
  explicit SqliteEngine(const Settings& s) : settings_(s), main_(s, s.create) {
    const std::string mode =
        s.choice("journal_mode", {"wal", "delete", "truncate", "persist", "memory", "off"});
    main_.execute("open", "PRAGMA page_size=" + std::to_string(s.number("page_size")));
    main_.execute("open", "PRAGMA journal_mode=" + mode);
    settle(main_);
    if (s.create) {
      main_.execute("open", main_.integer_keys()
                                ? "CREATE TABLE kv (k INTEGER PRIMARY KEY, v BLOB NOT NULL)"
                                : "CREATE TABLE kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) "
                                  "WITHOUT ROWID");
    }
  }

  std::unique_ptr<Session> session() override {
    auto connection = std::make_unique<Connection>(settings_, false);
    settle(*connection);
    return std::make_unique<SqliteSession>(std::move(connection));
  }
  // A commit at full synchronous makes what is before it durable, with any journal mode.
  void sync() override {
    main_.execute("sync", "PRAGMA synchronous=FULL");
    main_.execute("sync", "PRAGMA wal_checkpoint(TRUNCATE)");
    main_.execute("sync", "PRAGMA user_version=1");
    main_.execute("sync", "PRAGMA synchronous=" + synchronous());
  }
  void compact() override { main_.execute("compact", "VACUUM"); }
  std::string properties() override {
    Statement pages(main_, "stats", "SELECT page_count, page_size FROM pragma_page_count, "
                                    "pragma_page_size");
    pages.step();
    std::string text = "sqlite: pages " + std::string(pages.column(0));
    text += ", page size " + std::string(pages.column(1)) + "\n";
    pages.reset();
    return text;
  }

 private:
  std::string synchronous() const {
    const std::string& asked =
        settings_.choice("synchronous", {"by-sync", "off", "normal", "full", "extra"});
    if (asked != "by-sync") {
      return asked;
    }
    return settings_.sync ? "full" : "off";
  }
  void settle(Connection& connection) const {
    connection.execute("open", "PRAGMA synchronous=" + synchronous());
    connection.execute("open", "PRAGMA cache_size=-" +
                                   std::to_string(settings_.number("cache_size") / 1024));
    connection.execute("open",
                       "PRAGMA mmap_size=" + std::to_string(settings_.number("mmap_size")));
  }

  Settings settings_;
  Connection main_;
};

}  // namespace

const EngineInfo& engine_sqlite() {
  static const EngineInfo info = {
      "sqlite",
      sqlite3_libversion(),
      {{"keys", "blob", "blob, or integer: keys of eight bytes as row numbers, for large values"},
       {"journal_mode", "wal", "wal, delete, truncate, persist, memory or off"},
       {"synchronous", "by-sync", "off, normal, full, extra; by-sync: full with --sync, else off"},
       {"page_size", "4k", "bytes"},
       {"cache_size", "2000k", "page cache of each thread, bytes"},
       {"mmap_size", "0", "bytes of the file read through a memory map"}},
      [](const Settings& settings) -> std::unique_ptr<Engine> {
        return std::make_unique<SqliteEngine>(settings);
      }};
  return info;
}

}  // namespace kvbench

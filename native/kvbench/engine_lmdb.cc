// LMDB: one file mapped into memory, one writer at a time, readers that take no lock.
// debian: liblmdb-dev
// header: lmdb.h
// link: -llmdb
#include <lmdb.h>

#include <algorithm>
#include <cstdio>

#include "engine.h"

namespace kvbench {

namespace {

void check(const char* operation, int code) {
  if (code != 0) {
    std::string text = std::string("lmdb: ") + mdb_strerror(code);
    text += code == MDB_MAP_FULL ? "; try a larger --engine_opt map_size" : "";
    throw Failure(operation, text);
  }
}

MDB_val to_val(std::string_view text) {
  // The library takes no pointer to const; it does not write to keys and values it is given.
  return {text.size(), const_cast<char*>(text.data())};
}

std::string_view to_view(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

// Aborted unless committed.
class WriteTransaction {
 public:
  explicit WriteTransaction(MDB_env* env, const char* operation) : operation_(operation) {
    check(operation_, mdb_txn_begin(env, nullptr, 0, &txn_));
  }
  WriteTransaction(const WriteTransaction&) = delete;
  WriteTransaction& operator=(const WriteTransaction&) = delete;
  ~WriteTransaction() {
    if (txn_ != nullptr) {
      mdb_txn_abort(txn_);
    }
  }

  MDB_txn* get() { return txn_; }
  void commit() {
    MDB_txn* txn = txn_;
    txn_ = nullptr;  // mdb_txn_commit frees it, failing or not
    check(operation_, mdb_txn_commit(txn));
  }

 private:
  const char* operation_;
  MDB_txn* txn_ = nullptr;
};

class LmdbCursor : public Cursor {
 public:
  LmdbCursor(MDB_env* env, MDB_dbi dbi) {
    check("scan", mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn_));
    const int code = mdb_cursor_open(txn_, dbi, &cursor_);
    if (code != 0) {
      mdb_txn_abort(txn_);
      check("scan", code);
    }
  }
  LmdbCursor(const LmdbCursor&) = delete;
  LmdbCursor& operator=(const LmdbCursor&) = delete;
  ~LmdbCursor() override {
    mdb_cursor_close(cursor_);
    mdb_txn_abort(txn_);
  }

  bool first() override { return move(MDB_FIRST); }
  bool last() override { return move(MDB_LAST); }
  bool seek(std::string_view key) override {
    key_ = to_val(key);
    return move(MDB_SET_RANGE);
  }
  bool next() override { return move(MDB_NEXT); }
  bool previous() override { return move(MDB_PREV); }
  std::string_view key() override { return to_view(key_); }
  std::string_view value() override { return to_view(value_); }

 private:
  bool move(MDB_cursor_op how) {
    const int code = mdb_cursor_get(cursor_, &key_, &value_, how);
    if (code != MDB_NOTFOUND) {
      check("scan", code);
    }
    return code == 0;
  }

  MDB_txn* txn_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
  MDB_val key_{};
  MDB_val value_{};
};

class LmdbSession : public Session {
 public:
  LmdbSession(MDB_env* env, MDB_dbi dbi) : env_(env), dbi_(dbi) {
    check("open", mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader_));
    mdb_txn_reset(reader_);
  }
  LmdbSession(const LmdbSession&) = delete;
  LmdbSession& operator=(const LmdbSession&) = delete;
  ~LmdbSession() override { mdb_txn_abort(reader_); }

  void put(std::string_view key, std::string_view value) override {
    WriteTransaction txn(env_, "put");
    put_in(txn.get(), "put", key, value);
    txn.commit();
  }
  void write(const Batch& batch) override {
    WriteTransaction txn(env_, "write");
    for (std::size_t i = 0; i < batch.size(); i++) {
      put_in(txn.get(), "write", batch.key(i), batch.value(i));
    }
    txn.commit();
  }
  void remove(std::string_view key) override {
    WriteTransaction txn(env_, "delete");
    MDB_val k = to_val(key);
    const int code = mdb_del(txn.get(), dbi_, &k, nullptr);
    if (code == MDB_NOTFOUND) {
      return;
    }
    check("delete", code);
    txn.commit();
  }
  // The slot of the reader is kept; each read renews its view of the database.
  bool get(std::string_view key, std::string& value) override {
    check("get", mdb_txn_renew(reader_));
    MDB_val k = to_val(key);
    MDB_val v{};
    const int code = mdb_get(reader_, dbi_, &k, &v);
    if (code == 0) {
      value.assign(static_cast<const char*>(v.mv_data), v.mv_size);
    }
    mdb_txn_reset(reader_);
    if (code != MDB_NOTFOUND) {
      check("get", code);
    }
    return code == 0;
  }
  std::unique_ptr<Cursor> scan() override { return std::make_unique<LmdbCursor>(env_, dbi_); }

 private:
  void put_in(MDB_txn* txn, const char* operation, std::string_view key, std::string_view value) {
    MDB_val k = to_val(key);
    MDB_val v = to_val(value);
    check(operation, mdb_put(txn, dbi_, &k, &v, 0));
  }

  MDB_env* env_;
  MDB_dbi dbi_;
  MDB_txn* reader_ = nullptr;
};

class LmdbEngine : public Engine {
 public:
  explicit LmdbEngine(const Settings& settings) : env_(nullptr, mdb_env_close) {
    MDB_env* env = nullptr;
    check("open", mdb_env_create(&env));
    env_.reset(env);
    check("open", mdb_env_set_mapsize(env, map_size(settings)));
    // Two for each thread (gets and a cursor), and some for tools that look in from outside.
    check("open", mdb_env_set_maxreaders(env, 2 * settings.sessions + 16));
    unsigned flags = MDB_NOTLS;
    flags |= settings.sync ? 0 : MDB_NOSYNC;
    flags |= settings.flag("writemap") ? MDB_WRITEMAP : 0;
    flags |= settings.flag("readahead") ? 0 : MDB_NORDAHEAD;
    check("open", mdb_env_open(env, settings.path.c_str(), flags, 0644));
    WriteTransaction txn(env, "open");
    check("open", mdb_dbi_open(txn.get(), nullptr, 0, &dbi_));
    txn.commit();
  }

  std::unique_ptr<Session> session() override {
    return std::make_unique<LmdbSession>(env_.get(), dbi_);
  }
  void sync() override { check("sync", mdb_env_sync(env_.get(), 1)); }
  void compact() override {}  // free pages are used again; there is nothing to do in the background
  std::string properties() override {
    MDB_stat stat{};
    MDB_envinfo info{};
    check("stats", mdb_env_stat(env_.get(), &stat));
    check("stats", mdb_env_info(env_.get(), &info));
    char text[256];
    std::snprintf(text, sizeof text,
                  "lmdb: entries %zu, depth %u, page size %u, leaf pages %zu, branch pages %zu, "
                  "overflow pages %zu, last page %zu, map size %zu\n",
                  stat.ms_entries, stat.ms_depth, stat.ms_psize, stat.ms_leaf_pages,
                  stat.ms_branch_pages, stat.ms_overflow_pages, info.me_last_pgno,
                  info.me_mapsize);
    return text;
  }

 private:
  // The file is sparse: a map that is too large costs nothing, one that is too small ends the run.
  static std::size_t map_size(const Settings& settings) {
    const std::uint64_t asked = settings.number("map_size");
    const std::uint64_t entry = settings.key_size + settings.value_size + 16;
    const std::uint64_t page = 4096;
    return asked != 0 ? asked : (8 * settings.entries * entry / page + (1U << 18)) * page;
  }

  std::unique_ptr<MDB_env, void (*)(MDB_env*)> env_;
  MDB_dbi dbi_ = 0;
};

}  // namespace

const EngineInfo& engine_lmdb() {
  static const EngineInfo info = {
      "lmdb",
      std::to_string(MDB_VERSION_MAJOR) + "." + std::to_string(MDB_VERSION_MINOR) + "." +
          std::to_string(MDB_VERSION_PATCH),
      {{"map_size", "0", "largest size of the database; 0: eight times the data and 1 GiB"},
       {"writemap", "0", "write into the map instead of by system calls"},
       {"readahead", "1", "let the kernel read ahead"}},
      [](const Settings& settings) -> std::unique_ptr<Engine> {
        return std::make_unique<LmdbEngine>(settings);
      }};
  return info;
}

}  // namespace kvbench

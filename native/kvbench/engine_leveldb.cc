// LevelDB: a log-structured merge tree. Its forks (Basho's, HyperLevelDB) have the same interface.
// debian: libleveldb-dev
// header: leveldb/db.h
// link: -lleveldb
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include "engine.h"

namespace kvbench {

namespace {

void check(const char* operation, const leveldb::Status& status) {
  if (!status.ok()) {
    throw Failure(operation, "leveldb: " + status.ToString());
  }
}

leveldb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const leveldb::Slice& text) { return {text.data(), text.size()}; }

class LevelCursor : public Cursor {
 public:
  explicit LevelCursor(leveldb::DB& db) : iterator_(db.NewIterator(leveldb::ReadOptions())) {}

  bool first() override { return iterator_->SeekToFirst(), valid(); }
  bool last() override { return iterator_->SeekToLast(), valid(); }
  bool seek(std::string_view key) override { return iterator_->Seek(slice(key)), valid(); }
  bool next() override { return iterator_->Next(), valid(); }
  bool previous() override { return iterator_->Prev(), valid(); }
  std::string_view key() override { return view(iterator_->key()); }
  std::string_view value() override { return view(iterator_->value()); }

 private:
  bool valid() {
    if (iterator_->Valid()) {
      return true;
    }
    check("scan", iterator_->status());
    return false;
  }

  std::unique_ptr<leveldb::Iterator> iterator_;
};

class LevelSession : public Session {
 public:
  LevelSession(leveldb::DB& db, bool sync) : db_(db) { write_.sync = sync; }

  void put(std::string_view key, std::string_view value) override {
    single_.Clear();
    single_.Put(slice(key), slice(value));
    check("put", db_.Write(write_, &single_));
  }
  void write(const Batch& batch) override {
    leveldb::WriteBatch writes;
    for (std::size_t i = 0; i < batch.size(); i++) {
      writes.Put(slice(batch.key(i)), slice(batch.value(i)));
    }
    check("write", db_.Write(write_, &writes));
  }
  void remove(std::string_view key) override { check("delete", db_.Delete(write_, slice(key))); }
  bool get(std::string_view key, std::string& value) override {
    const leveldb::Status status = db_.Get(leveldb::ReadOptions(), slice(key), &value);
    if (status.IsNotFound()) {
      return false;
    }
    check("get", status);
    return true;
  }
  std::unique_ptr<Cursor> scan() override { return std::make_unique<LevelCursor>(db_); }

 private:
  leveldb::DB& db_;
  leveldb::WriteOptions write_;
  leveldb::WriteBatch single_;  // keeps its memory, as in upstream's db_bench
};

class LevelEngine : public Engine {
 public:
  explicit LevelEngine(const Settings& s)
      : sync_(s.sync),
        cache_(leveldb::NewLRUCache(s.number("cache_size"))),
        filter_(leveldb::NewBloomFilterPolicy(static_cast<int>(s.number("bloom_bits")))) {
    leveldb::Options options;
    options.create_if_missing = s.create;
    options.block_cache = cache_.get();
    options.filter_policy = s.number("bloom_bits") == 0 ? nullptr : filter_.get();
    options.write_buffer_size = s.number("write_buffer_size");
    options.block_size = s.number("block_size");
    options.max_open_files = static_cast<int>(s.number("open_files"));
    options.compression = s.choice("compression", {"none", "snappy"}) == "none"
                              ? leveldb::kNoCompression
                              : leveldb::kSnappyCompression;
    leveldb::DB* db = nullptr;
    check("open", leveldb::DB::Open(options, s.path, &db));
    db_.reset(db);
  }

  std::unique_ptr<Session> session() override {
    return std::make_unique<LevelSession>(*db_, sync_);
  }
  // A synced write syncs the log before it; older logs are in synced tables.
  void sync() override {
    leveldb::WriteOptions options;
    options.sync = true;
    leveldb::WriteBatch nothing;
    check("sync", db_->Write(options, &nothing));
  }
  void compact() override { db_->CompactRange(nullptr, nullptr); }
  std::string properties() override {
    std::string text;
    db_->GetProperty("leveldb.stats", &text);
    return text;
  }

 private:
  bool sync_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  std::unique_ptr<leveldb::DB> db_;  // goes first
};

}  // namespace

const EngineInfo& engine_leveldb() {
  static const EngineInfo info = {
      "leveldb",
      std::to_string(leveldb::kMajorVersion) + "." + std::to_string(leveldb::kMinorVersion),
      {{"cache_size", "8m", "block cache, bytes"},
       {"write_buffer_size", "4m", "memtable, bytes"},
       {"block_size", "4k", "bytes"},
       {"bloom_bits", "0", "bits per key of a Bloom filter; 0: none"},
       {"open_files", "1000", "table files kept open"},
       {"compression", "none", "none or snappy"}},
      [](const Settings& settings) -> std::unique_ptr<Engine> {
        return std::make_unique<LevelEngine>(settings);
      }};
  return info;
}

}  // namespace kvbench

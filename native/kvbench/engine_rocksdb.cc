// RocksDB with its own defaults, but for what --engine_opt says.
// debian: librocksdb-dev
// header: rocksdb/db.h
// link: -lrocksdb
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include "engine.h"

namespace kvbench {

namespace {

void check(const char* operation, const rocksdb::Status& status) {
  if (!status.ok()) {
    throw Failure(operation, "rocksdb: " + status.ToString());
  }
}

// A database is opened into a plain pointer up to RocksDB 10, into an owner after it.
template <typename Owner>
auto open_database(const rocksdb::Options& options, const std::string& path, Owner& db, int)
    -> decltype(rocksdb::DB::Open(options, path, &db)) {
  return rocksdb::DB::Open(options, path, &db);
}
template <typename Owner>
rocksdb::Status open_database(const rocksdb::Options& options, const std::string& path, Owner& db,
                              long) {
  typename Owner::element_type* opened = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(options, path, &opened);
  db.reset(opened);
  return status;
}

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const rocksdb::Slice& text) { return {text.data(), text.size()}; }

class RocksCursor : public Cursor {
 public:
  explicit RocksCursor(rocksdb::DB& db) : iterator_(db.NewIterator(rocksdb::ReadOptions())) {}

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

  std::unique_ptr<rocksdb::Iterator> iterator_;
};

class RocksSession : public Session {
 public:
  RocksSession(rocksdb::DB& db, bool sync, bool ordered) : db_(db), ordered_(ordered) {
    write_.sync = sync;
  }

  void put(std::string_view key, std::string_view value) override {
    single_.Clear();
    check("put", single_.Put(slice(key), slice(value)));
    check("put", db_.Write(write_, &single_));
  }
  void write(const Batch& batch) override {
    rocksdb::WriteBatch writes;
    for (std::size_t i = 0; i < batch.size(); i++) {
      check("write", writes.Put(slice(batch.key(i)), slice(batch.value(i))));
    }
    check("write", db_.Write(write_, &writes));
  }
  void remove(std::string_view key) override { check("delete", db_.Delete(write_, slice(key))); }
  bool get(std::string_view key, std::string& value) override {
    const rocksdb::Status status = db_.Get(read_, slice(key), &value);
    if (status.IsNotFound()) {
      return false;
    }
    check("get", status);
    return true;
  }
  std::vector<bool> multi_get(const std::vector<std::string_view>& keys,
                              std::vector<std::string>& values) override {
    std::vector<rocksdb::Slice> slices;
    slices.reserve(keys.size());
    for (const std::string_view key : keys) {
      slices.push_back(slice(key));
    }
    const std::vector<rocksdb::Status> statuses = db_.MultiGet(read_, slices, &values);
    std::vector<bool> found(keys.size());
    for (std::size_t i = 0; i < keys.size(); i++) {
      found[i] = statuses[i].ok();
      if (!statuses[i].IsNotFound()) {
        check("get", statuses[i]);
      }
    }
    return found;
  }
  std::unique_ptr<Cursor> scan() override {
    if (!ordered_) {
      throw Failure("scan", "rocksdb: table=plain and memtable=prefix_hash have no order of keys");
    }
    return std::make_unique<RocksCursor>(db_);
  }

 private:
  rocksdb::DB& db_;
  bool ordered_;
  rocksdb::WriteOptions write_;
  rocksdb::WriteBatch single_;  // keeps its memory, as in upstream's db_bench
  rocksdb::ReadOptions read_;
};

class RocksEngine : public Engine {
 public:
  explicit RocksEngine(const Settings& s)
      : sync_(s.sync), plain_(s.choice("table", {"block", "plain"}) == "plain"),
        hashed_(s.choice("memtable", {"skip_list", "prefix_hash"}) == "prefix_hash") {
    rocksdb::Options options;
    options.create_if_missing = s.create;
    options.table_factory.reset(plain_ ? plain_table(s) : block_table(s));
    if (plain_ || hashed_) {
      const std::uint64_t prefix = s.number("prefix_size");
      options.prefix_extractor.reset(
          rocksdb::NewFixedPrefixTransform(prefix == 0 ? s.key_size : prefix));
    }
    if (hashed_) {
      options.memtable_factory.reset(rocksdb::NewHashSkipListRepFactory());
      options.allow_concurrent_memtable_write = false;
    }
    options.write_buffer_size = s.number("write_buffer_size");
    options.max_background_jobs = static_cast<int>(s.number("max_background_jobs"));
    options.compression = s.choice("compression", {"none", "snappy"}) == "none"
                              ? rocksdb::kNoCompression
                              : rocksdb::kSnappyCompression;
    rocksdb::Options complete;
    check("open", rocksdb::GetOptionsFromString(options, s.text("options"), &complete));
    check("open", open_database(complete, s.path, db_, 0));
  }

  std::unique_ptr<Session> session() override {
    return std::make_unique<RocksSession>(*db_, sync_, !plain_ && !hashed_);
  }
  void sync() override { check("sync", db_->SyncWAL()); }
  void compact() override {
    check("compact", db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
  }
  std::string properties() override {
    std::string text;
    db_->GetProperty("rocksdb.stats", &text);
    return text;
  }

 private:
  static rocksdb::TableFactory* block_table(const Settings& s) {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(s.number("cache_size"));
    table.block_size = s.number("block_size");
    if (s.number("bloom_bits") != 0) {
      table.filter_policy.reset(
          rocksdb::NewBloomFilterPolicy(static_cast<double>(s.number("bloom_bits"))));
    }
    return rocksdb::NewBlockBasedTableFactory(table);
  }
  static rocksdb::TableFactory* plain_table(const Settings& s) {
    rocksdb::PlainTableOptions table;
    table.user_key_len = static_cast<std::uint32_t>(s.key_size);
    table.bloom_bits_per_key = static_cast<int>(s.number("bloom_bits"));
    return rocksdb::NewPlainTableFactory(table);
  }

  bool sync_;
  bool plain_;
  bool hashed_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

const EngineInfo& engine_rocksdb() {
  static const EngineInfo info = {
      "rocksdb",
      std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." +
          std::to_string(ROCKSDB_PATCH),
      {{"cache_size", "8m", "block cache, bytes"},
       {"write_buffer_size", "64m", "memtable, bytes"},
       {"block_size", "4k", "bytes"},
       {"bloom_bits", "0", "bits per key of a Bloom filter; 0: none"},
       {"max_background_jobs", "2", "flushes and compactions at a time"},
       {"compression", "none", "none or snappy"},
       {"table", "block", "block or plain (a key is found by its prefix; no cache; no scans)"},
       {"memtable", "skip_list", "skip_list or prefix_hash (found by prefix; no scans)"},
       {"prefix_size", "0", "bytes of that prefix; 0: the whole key"},
       {"options", "", "more, in RocksDB's own form: name=value;name=value"}},
      [](const Settings& settings) -> std::unique_ptr<Engine> {
        return std::make_unique<RocksEngine>(settings);
      }};
  return info;
}

}  // namespace kvbench

#include "workload.h"

#include <algorithm>

namespace kvbench {

namespace {

void write_keys(Worker& w) {
  const std::uint64_t batch_size = w.plan().batch;
  const std::uint64_t pair_size = w.options().key_size + w.values().size();
  KeyBuffer key(w.options().key_form());
  std::string value;
  Batch batch;
  while (w.go_on()) {
    const std::uint64_t pairs = std::min(batch_size, w.remaining());
    batch.clear();
    for (std::uint64_t i = 0; i < pairs; i++) {
      const std::uint64_t number = w.next_number();
      w.values().make(number, w.next_generation(), value);
      if (batch_size > 1) {
        batch.add(key.encode(number), value);
      } else {
        w.session->put(key.encode(number), value);
      }
    }
    if (batch_size > 1) {
      w.session->write(batch);
    }
    w.finished(pairs, pairs * pair_size);
    w.pace(pairs * pair_size);
  }
}

void read_keys(Worker& w, KeyForm form) {
  KeyBuffer key(form);
  std::string value;
  const bool verify = w.options().verify;
  while (w.go_on()) {
    const std::uint64_t number = w.next_number();
    const bool found = w.session->get(key.encode(number), value);
    w.stats.asked++;
    w.stats.found += found;
    w.finished(1, found ? form.size + value.size() : 0);
    if (verify && found) {
      w.verify_value(number, value);
      w.restart_operation();
    }
  }
}

void read_random(Worker& w) { read_keys(w, w.options().key_form()); }

void read_missing(Worker& w) {
  KeyForm longer = w.options().key_form();
  longer.size++;
  read_keys(w, longer);
  if (w.options().verify && w.stats.found != 0) {
    throw WrongValue(w.plan().name + ": a key that was never written was found");
  }
}

void multi_read(Worker& w) {
  const std::uint64_t batch_size = w.plan().batch;
  std::vector<KeyBuffer> buffers(batch_size, KeyBuffer(w.options().key_form()));
  std::vector<std::uint64_t> numbers(batch_size);
  std::vector<std::string_view> keys(batch_size);
  std::vector<std::string> values(batch_size);
  while (w.go_on()) {
    for (std::size_t i = 0; i < batch_size; i++) {
      numbers[i] = w.next_number();
      keys[i] = buffers[i].encode(numbers[i]);
    }
    const std::vector<bool> found = w.session->multi_get(keys, values);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < batch_size; i++) {
      w.stats.found += found[i];
      bytes += found[i] ? keys[i].size() + values[i].size() : 0;
    }
    w.stats.asked += batch_size;
    w.finished(batch_size, bytes);
    if (w.options().verify) {
      for (std::size_t i = 0; i < batch_size; i++) {
        if (found[i]) {
          w.verify_value(numbers[i], values[i]);
        }
      }
      w.restart_operation();
    }
  }
}

void verify_entry(const Worker& w, Cursor& cursor) {
  const std::string_view key = cursor.key();
  if (key.size() != w.options().key_size) {
    throw WrongValue(w.plan().name + ": a key of " + std::to_string(key.size()) +
                     " bytes was never written");
  }
  w.verify_value(decode_key(key, w.options().decimal_keys), cursor.value());
}

// Forward or backward over everything, once.
template <bool (Cursor::*BEGIN)(), bool (Cursor::*MOVE)(), int DIRECTION>
void walk(Worker& w) {
  const std::unique_ptr<Cursor> cursor = w.session->scan();
  const bool verify = w.options().verify;
  std::string last;
  bool more = (cursor.get()->*BEGIN)();
  while (more && w.go_on()) {
    w.finished(1, cursor->key().size() + cursor->value().size());
    if (verify) {
      verify_entry(w, *cursor);
      if (!last.empty() && cursor->key().compare(last) * DIRECTION <= 0) {
        throw WrongValue(w.plan().name + ": keys are out of order");
      }
      last = cursor->key();
      w.restart_operation();
    }
    more = (cursor.get()->*MOVE)();
  }
}

// Each seek with a cursor of its own, so that each sees the writes before it.
void seek_random(Worker& w) {
  KeyBuffer key(w.options().key_form());
  while (w.go_on()) {
    const std::uint64_t number = w.next_number();
    const std::string_view wanted = key.encode(number);
    const std::unique_ptr<Cursor> cursor = w.session->scan();
    bool valid = cursor->seek(wanted);
    const bool found = valid && cursor->key() == wanted;
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; valid && i < w.options().seek_nexts; i++) {
      bytes += cursor->key().size() + cursor->value().size();
      if (w.options().verify) {
        verify_entry(w, *cursor);
      }
      valid = cursor->next();
    }
    w.stats.asked++;
    w.stats.found += found;
    w.finished(1, bytes);
    if (w.options().verify && valid) {
      verify_entry(w, *cursor);
      w.restart_operation();
    }
  }
}

void delete_random(Worker& w) {
  KeyBuffer key(w.options().key_form());
  while (w.go_on()) {
    w.session->remove(key.encode(w.next_number()));
    w.finished(1, w.options().key_size);
    w.pace(w.options().key_size);
  }
}

Workload fill(const char* name, const char* meaning, Order order) {
  Workload w{name, meaning, "write", write_keys, nullptr, order};
  w.fresh = w.writes = true;
  w.timed = order == Order::random;
  return w;
}

Workload fill_batch(const char* name, const char* meaning, Order order) {
  Workload w = fill(name, meaning, order);
  w.batch = 1000;
  return w;
}

Workload change(const char* name, const char* meaning, const char* operation,
                void (*run)(Worker&)) {
  Workload w{name, meaning, operation, run, nullptr};
  w.writes = true;
  return w;
}

Workload fill_sync() {
  Workload w = fill("fillsync", "num/1000 random keys into an empty database, each durable",
                    Order::random);
  w.sync = true;
  w.part = 1000;
  return w;
}

Workload whole(const char* name, const char* meaning, void (*run)(Worker&)) {
  Workload w{name, meaning, "read", run, nullptr};
  w.timed = false;
  return w;
}

Workload single(const char* name, const char* meaning) {
  return {name, meaning, name, nullptr, nullptr};
}

}  // namespace

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = {
      fill("fillseq", "all keys in order into an empty database", Order::sequential),
      fill("fillrandom", "random keys into an empty database", Order::random),
      fill("filluniquerandom", "every key once, shuffled, into an empty database; threads share",
           Order::unique),
      fill_batch("fillbatch", "fillseq, 1000 pairs (or --batch_size) as one write",
                 Order::sequential),
      fill_batch("fillseqbatch", "the same as fillbatch", Order::sequential),
      fill_batch("fillrandbatch", "fillrandom, 1000 pairs (or --batch_size) as one write",
                 Order::random),
      fill_sync(),
      change("overwrite", "random keys into the database that is there", "write", write_keys),
      change("deleterandom", "delete random keys", "delete", delete_random),
      whole("readseq", "read everything in order",
            walk<&Cursor::first, &Cursor::next, 1>),
      whole("readreverse", "read everything in reverse order",
            walk<&Cursor::last, &Cursor::previous, -1>),
      {"readrandom", "read random keys", "read", read_random, nullptr},
      {"readmissing", "read random keys that are not there", "read", read_missing, nullptr},
      {"multireadrandom", "read --batch_size random keys at a time", "read", multi_read, nullptr},
      {"seekrandom", "seek random keys, then --seek_nexts entries", "seek", seek_random, nullptr},
      {"readwhilewriting", "readrandom with one more thread that overwrites", "read", read_random,
       write_keys},
      single("flush", "make everything written so far durable"),
      single("compact", "the engine's own compaction"),
      single("stats", "what the engine says of itself"),
  };
  return all;
}

const Workload& workload_named(const std::string& name) {
  for (const Workload& workload : workloads()) {
    if (name == workload.name) {
      return workload;
    }
  }
  throw UsageError("unknown benchmark '" + name + "'; --help lists those there are");
}

}  // namespace kvbench

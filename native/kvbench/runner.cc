#include "runner.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace kvbench {

namespace {

void prepare(PhasePlan& plan, const Workload& workload, std::uint64_t run, const Options& options,
             const Values& values) {
  plan.options = &options;
  plan.values = &values;
  plan.name = workload.name;
  plan.run = run;
  plan.order = workload.order;
  plan.operations = workload.writes ? options.writes_per_thread() : options.reads_per_thread();
  plan.operations = std::max<std::uint64_t>(1, plan.operations / workload.part);
  plan.batch = options.batch_size > 1 ? options.batch_size : workload.batch;
  plan.timed = workload.timed;
  plan.threads = static_cast<unsigned>(options.threads);
  if (workload.writes) {
    plan.bytes_per_s = static_cast<double>(options.write_rate_limit) / plan.threads;
  }
}

// The writer goes on until the readers are done.
void prepare_writer(PhasePlan& plan, const PhasePlan& readers) {
  plan.options = readers.options;
  plan.values = readers.values;
  plan.name = readers.name + ".writer";
  plan.run = readers.run;
  plan.batch = 1;
  plan.bytes_per_s = static_cast<double>(readers.options->write_rate_limit);
}

// The threads of a phase, and the gate at which all wait until all have opened their sessions.
class Crew {
 public:
  Crew(Engine& engine, PhasePlan& readers, PhasePlan& writer)
      : engine_(engine), plan_(readers), writer_plan_(writer) {}

  void hire(PhasePlan& plan, unsigned index, void (*work)(Worker&)) {
    try {
      workers_.push_back(std::make_unique<Worker>(plan, index));
      Worker& worker = *workers_.back();
      threads_.emplace_back([this, &worker, work] { run(worker, work); });
    } catch (const std::exception& error) {  // the threads that run must be ended all the same
      fail(std::make_exception_ptr(
          Failure("thread", "cannot start thread " + std::to_string(threads_.size() + 1) + ": " +
                                error.what())));
    }
  }

  bool failed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return error_ != nullptr;
  }

  void start() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return ready_ == threads_.size(); });
    open_ = true;
    changed_.notify_all();
  }

  void join(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < std::min(end, threads_.size()); i++) {
      threads_[i].join();
    }
  }

  void rethrow() {
    if (error_ != nullptr) {
      std::rethrow_exception(error_);
    }
  }

  const Worker& worker(std::size_t i) const { return *workers_[i]; }

 private:
  void run(Worker& worker, void (*work)(Worker&)) {
    try {
      worker.session = engine_.session();
    } catch (...) {
      fail(std::current_exception());
    }
    {
      std::unique_lock<std::mutex> lock(mutex_);
      ready_++;
      changed_.notify_all();
      changed_.wait(lock, [this] { return open_; });
    }
    try {
      worker.start();
      if (worker.session != nullptr && !worker.stopped()) {
        work(worker);
      }
      worker.end();
      worker.session.reset();
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void fail(std::exception_ptr error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (error_ == nullptr) {
      error_ = std::move(error);
    }
    plan_.stop = true;
    writer_plan_.stop = true;
  }

  Engine& engine_;
  PhasePlan& plan_;
  PhasePlan& writer_plan_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  std::size_t ready_ = 0;
  bool open_ = false;
};

PhaseResult result_of(const PhasePlan& plan, const char* operation, unsigned threads) {
  PhaseResult result;
  result.name = plan.name;
  result.run = plan.run;
  result.operation = operation;
  result.threads = threads;
  return result;
}

PhaseResult run_single(const Workload& workload, std::uint64_t run, Engine& engine) {
  PhaseResult result;
  result.name = workload.name;
  result.run = run;
  result.operation = workload.operation;
  result.stats.start_ns = now_ns();
  if (std::string("compact") == workload.name) {
    engine.compact();
  } else {
    engine.sync();
  }
  result.stats.finish_ns = now_ns();
  const std::int64_t took_ns = result.stats.finish_ns - result.stats.start_ns;
  result.stats.operations = 1;
  result.stats.thread_seconds = static_cast<double>(took_ns) / 1e9;
  result.stats.histogram.add(took_ns);
  return result;
}

}  // namespace

std::vector<PhaseResult> run_phase(const Workload& workload, std::uint64_t run,
                                   const Options& options, const Values& values, Engine& engine) {
  if (workload.run == nullptr) {
    return {run_single(workload, run, engine)};
  }
  PhasePlan plan;
  prepare(plan, workload, run, options, values);
  PhasePlan writer_plan;
  prepare_writer(writer_plan, plan);
  Options quiet = options;  // interval lines of the writer would be taken for those of a reader
  quiet.stats_interval_s = 0;
  writer_plan.options = &quiet;
  Crew crew(engine, plan, writer_plan);
  for (unsigned i = 0; i < plan.threads && !crew.failed(); i++) {
    crew.hire(plan, i, workload.run);
  }
  if (workload.beside != nullptr && !crew.failed()) {
    crew.hire(writer_plan, 0, workload.beside);
  }
  crew.start();
  crew.join(0, plan.threads);
  writer_plan.stop = true;
  crew.join(plan.threads, plan.threads + 1U);
  crew.rethrow();

  std::vector<PhaseResult> results = {result_of(plan, workload.operation, plan.threads)};
  for (unsigned i = 0; i < plan.threads; i++) {
    results[0].stats.merge(crew.worker(i).stats);
  }
  results[0].searched = !workload.writes && workload.timed;
  if (workload.beside != nullptr) {
    results[0].role = "reader";
    results.push_back(result_of(writer_plan, "write", 1));
    results[1].role = "writer";
    results[1].stats.merge(crew.worker(plan.threads).stats);
  }
  return results;
}

DriverCost measure_driver(const Options& options, const Values& values) {
  constexpr std::uint64_t OPERATIONS = 100'000;
  Options own = options;
  own.threads = own.batch_size = 1;
  own.duration_s = own.write_rate_limit = own.stats_interval_s = 0;
  own.reads = own.writes = OPERATIONS;
  own.verify = false;
  const std::unique_ptr<Engine> engine = engine_null().open(Settings{});
  const auto cost_ns = [&](const char* name) {
    const Stats stats = run_phase(workload_named(name), 1, own, values, *engine)[0].stats;
    return stats.thread_seconds * 1e9 / static_cast<double>(stats.operations);
  };
  return {cost_ns("overwrite"), cost_ns("readrandom")};
}

std::string first_keys(const Workload& workload, std::uint64_t run, const Options& options,
                       const Values& values) {
  PhasePlan plan;
  prepare(plan, workload, run, options, values);
  PhasePlan writer_plan;
  prepare_writer(writer_plan, plan);
  KeyBuffer buffer(options.key_form());
  std::string text;
  const unsigned threads = plan.threads + (workload.beside == nullptr ? 0 : 1);
  for (unsigned i = 0; i < threads; i++) {
    const bool writer = i == plan.threads;
    PhasePlan& mine = writer ? writer_plan : plan;
    Worker worker(mine, writer ? 0 : i);
    for (std::uint64_t k = 0; k < std::min(options.dump_keys, worker.remaining()); k++) {
      const std::uint64_t number = worker.next_number();
      text += mine.name + " " + std::to_string(writer ? 0 : i) + " " + std::to_string(number) + " ";
      for (const char c : buffer.encode(number)) {
        static const char* const digits = "0123456789abcdef";
        text += digits[static_cast<unsigned char>(c) >> 4];
        text += digits[static_cast<unsigned char>(c) & 15];
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace kvbench

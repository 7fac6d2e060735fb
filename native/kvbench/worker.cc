#include "worker.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace kvbench {

namespace {

constexpr std::int64_t CHECK_OFTEN_ENOUGH_NS = NS_PER_MS;
constexpr std::int64_t CHECK_TOO_SELDOM_NS = 10 * NS_PER_MS;
constexpr std::uint64_t MAX_STRIDE = 1024;
constexpr std::int64_t MAX_BURST_NS = 100 * NS_PER_MS;
constexpr std::int64_t LONGEST_SLEEP_NS = 20 * NS_PER_MS;

void sleep_ns(std::int64_t ns) {
  const timespec t{static_cast<std::time_t>(ns / NS_PER_SECOND),
                   static_cast<long>(ns % NS_PER_SECOND)};
  nanosleep(&t, nullptr);
}

std::string hex(std::string_view bytes) {
  static const char* const digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes.substr(0, 32)) {
    text += digits[static_cast<unsigned char>(c) >> 4];
    text += digits[static_cast<unsigned char>(c) & 15];
  }
  return text + (bytes.size() > 32 ? "..." : "");
}

}  // namespace

void Stats::merge(const Stats& other) {
  operations += other.operations;
  bytes += other.bytes;
  found += other.found;
  asked += other.asked;
  start_ns = start_ns == 0 ? other.start_ns : std::min(start_ns, other.start_ns);
  finish_ns = std::max(finish_ns, other.finish_ns);
  thread_seconds += other.thread_seconds;
  histogram.merge(other.histogram);
}

Worker::Worker(PhasePlan& plan, unsigned index)
    : plan_(plan),
      index_(index),
      histogram_(plan.options->histogram),
      random_(stream_seed(plan.options->seed, plan.name, plan.run, index)),
      permutation_(plan.options->num, stream_seed(plan.options->seed, plan.name, plan.run, 0)),
      limit_(plan.operations == 0 ? UINT64_MAX : plan.operations),
      generation_(mix(stream_seed(plan.options->seed, plan.name, plan.run, index))) {
  if (plan.order == Order::unique) {
    // The threads share the keys: each has one stretch of the permutation.
    const auto begin = [&](std::uint64_t i) {
      return static_cast<std::uint64_t>(static_cast<Wide>(plan.options->num) * i / plan.threads);
    };
    sequence_ = begin(index);
    limit_ = std::min(limit_, begin(index + 1U) - sequence_);
  }
  if (plan.timed && plan.options->duration_s != 0) {
    limit_ = UINT64_MAX;
  }
}

void Worker::start() {
  stats.start_ns = last_ns_ = last_check_ns_ = pace_start_ns_ = report_ns_ = now_ns();
  if (plan_.timed && plan_.options->duration_s != 0) {
    deadline_ns_ =
        stats.start_ns + static_cast<std::int64_t>(plan_.options->duration_s) * NS_PER_SECOND;
  }
}

void Worker::end() {
  stats.finish_ns = now_ns();
  stats.thread_seconds = static_cast<double>(stats.finish_ns - stats.start_ns) / 1e9;
}

// Slow operations are checked one by one, fast ones so seldom that it costs nothing.
bool Worker::check() {
  const std::int64_t now = now_ns();
  if (now - last_check_ns_ < CHECK_OFTEN_ENOUGH_NS) {
    stride_ = std::min(2 * stride_, MAX_STRIDE);
  } else if (now - last_check_ns_ > CHECK_TOO_SELDOM_NS) {
    stride_ = 1;
  }
  last_check_ns_ = now;
  until_check_ = stride_;
  const auto interval_ns =
      static_cast<std::int64_t>(plan_.options->stats_interval_s) * NS_PER_SECOND;
  if (interval_ns != 0 && now - report_ns_ >= interval_ns) {
    report(now);
  }
  return !stopped() && (deadline_ns_ == 0 || now < deadline_ns_);
}

void Worker::report(std::int64_t now) {
  const std::uint64_t done = stats.operations - reported_;
  const double span_s = static_cast<double>(now - report_ns_) / 1e9;
  const double all_s = static_cast<double>(now - stats.start_ns) / 1e9;
  std::time_t seconds = std::time(nullptr);
  std::tm date{};
  localtime_r(&seconds, &date);
  char text[32];
  std::strftime(text, sizeof text, "%Y/%m/%d-%H:%M:%S", &date);
  std::fprintf(stderr,
               "%s  ... thread %u: (%" PRIu64 ",%" PRIu64
               ") ops and (%.1f,%.1f) ops/second in (%.6f,%.6f) seconds\n",
               text, index_, done, stats.operations, static_cast<double>(done) / span_s,
               static_cast<double>(stats.operations) / all_s, span_s, all_s);
  report_ns_ = now;
  reported_ = stats.operations;
}

void Worker::pace(std::uint64_t bytes) {
  if (plan_.bytes_per_s <= 0.0) {
    return;
  }
  pace_bytes_ += static_cast<double>(bytes);
  const auto due =
      pace_start_ns_ + static_cast<std::int64_t>(pace_bytes_ / plan_.bytes_per_s * 1e9);
  std::int64_t now = now_ns();
  if (now - due > MAX_BURST_NS) {  // what was missed by more than that is not made up for
    pace_start_ns_ += now - due - MAX_BURST_NS;
  }
  if (due - now < NS_PER_MS) {
    return;
  }
  while (now < due && !stopped() && (deadline_ns_ == 0 || now < deadline_ns_)) {
    sleep_ns(std::min(due - now, LONGEST_SLEEP_NS));
    now = now_ns();
  }
  until_check_ = 1;
  restart_operation();
}

std::uint64_t Worker::next_number() {
  switch (plan_.order) {
    case Order::sequential:
      return sequence_++ % plan_.options->num;
    case Order::unique:
      return permutation_.at(sequence_++);
    case Order::random:
      break;
  }
  return random_.below(plan_.options->num);
}

void Worker::verify_value(std::uint64_t number, std::string_view value) const {
  if (!values().is_value_of(number, value)) {
    throw WrongValue(plan_.name + ": key number " + std::to_string(number) + " has a value of " +
                     std::to_string(value.size()) + " bytes that was never written to it: " +
                     hex(value));
  }
}

}  // namespace kvbench

// The staircase: latency and bandwidth of blocks from one that fits the first cache to one in RAM.
#include <cstring>
#include <memory>
#include <mutex>

#include "cases.h"
#include "memory.h"

namespace hostbench {

namespace {

// An iteration moves at least this much, so that its own cost does not show.
constexpr std::uint64_t BYTES_PER_ITERATION = UINT64_C(64) << 10;

constexpr std::uint64_t WARMED_BYTES = UINT64_C(4) << 20;

// The block of the case that runs. Google Benchmark calls a case's function several times until it
// knows how many iterations to ask for, in every thread; making a block takes longer than measuring it.
class Workshop {
 public:
  // Memory for loops that write into it, which ends its chain.
  const Block& block(std::uint64_t bytes, bool huge) {
    const std::lock_guard<std::mutex> guard(mutex_);
    chain_ = nullptr;
    return made(bytes, huge);
  }

  // Memory with a chain through it, and where that begins.
  std::pair<const Block&, void**> chain(std::uint64_t bytes, bool huge) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const Block& where = made(bytes, huge);
    if (chain_ == nullptr) {
      chain_ = make_chain(where, bytes);
    }
    return {where, chain_};
  }

 private:
  // The block that is there when it is such a one, else a new one.
  const Block& made(std::uint64_t bytes, bool huge) {
    if (block_ == nullptr || block_->size() != bytes || huge_ != huge) {
      chain_ = nullptr;
      block_.reset();
      block_ = std::make_unique<Block>(bytes, huge);
      huge_ = huge;
    }
    return *block_;
  }

  std::mutex mutex_;
  std::unique_ptr<Block> block_;
  void** chain_ = nullptr;
  bool huge_ = false;
};

bool refused(benchmark::State& state, const Block& block, bool huge) {
  if (huge && block.huge_percent() < 90.0) {
    state.SkipWithError("the kernel gave no huge pages; see /sys/kernel/mm/transparent_hugepage");
    return true;
  }
  if (state.thread_index() == 0) {
    state.counters[HUGE_PERCENT] = block.huge_percent();
  }
  return false;
}

void latency(benchmark::State& state, Workshop& workshop, std::uint64_t size, bool huge) {
  auto [block, place] = workshop.chain(size, huge);
  if (refused(state, block, huge)) {
    return;
  }
  // Cold caches would count for blocks that fit into the first two. Of a larger block a repetition
  // is a small part, whatever of it is in the last one.
  for (std::uint64_t line = 0; line < size / 64 && size <= WARMED_BYTES; line += LOADS_PER_WALK) {
    place = walk(place);
  }
  const double before = gigahertz();
  for (auto _ : state) {
    place = walk(place);
    benchmark::DoNotOptimize(place);
  }
  state.counters[GIGAHERTZ] = (before + gigahertz()) / 2;
  state.counters[OPERATIONS] = static_cast<double>(LOADS_PER_WALK);
}

enum class Motion { READ, WRITE, COPY };

void move_once(Motion motion, std::byte* place, std::uint64_t bytes) {
  if (motion == Motion::READ) {
    read_all(place, bytes);
  } else if (motion == Motion::WRITE) {
    write_all(place, bytes);
  } else {
    std::memcpy(place + bytes, place, bytes);
    benchmark::ClobberMemory();
  }
}

// Each thread has its own part. All parts together are `size`; a copy has as much again to write to.
void bandwidth(benchmark::State& state, const Block& block, Motion motion, std::uint64_t size) {
  const auto threads = static_cast<std::uint64_t>(state.threads());
  const std::uint64_t part = size / threads / READ_UNIT * READ_UNIT;
  const std::uint64_t stride = motion == Motion::COPY ? 2 * part : part;
  std::byte* place = block.data() + stride * static_cast<std::uint64_t>(state.thread_index());
  const std::uint64_t passes = 1 + (BYTES_PER_ITERATION - 1) / part;
  move_once(motion, place, part);
  for (auto _ : state) {
    for (std::uint64_t pass = 0; pass < passes; pass++) {
      move_once(motion, place, part);
    }
  }
  if (state.thread_index() == 0) {
    state.counters[BYTES] = static_cast<double>(part * passes);
  }
}

using Shared = std::shared_ptr<Workshop>;

Case latency_case(const Shared& workshop, std::uint64_t size, const std::string& pages) {
  const bool huge = pages == "huge";
  return {"latency/" + pages + "/" + size_text(size), Quantity::LATENCY,
          "loads that wait for each other, at random", size, 1, false,
          [=](benchmark::State& state) { latency(state, *workshop, size, huge); }};
}

struct Kind {
  Motion motion;
  const char* name;
  const char* meaning;
};

constexpr Kind KINDS[] = {
    {Motion::READ, "read", "vector loads in order"},
    {Motion::WRITE, "write", "vector stores in order"},
    {Motion::COPY, "copy", "the C library's memcpy from one block to another of this size"},
};

Case bandwidth_case(const Shared& workshop, const Kind& kind, std::uint64_t size,
                    const std::string& pages, int threads) {
  const bool huge = pages == "huge";
  const Motion motion = kind.motion;
  const std::uint64_t bytes = motion == Motion::COPY ? 2 * size : size;
  std::string name = std::string(kind.name) + "/" + pages + "/" + size_text(size);
  if (threads > 1) {
    name += "/" + std::to_string(threads) + "-threads";
  }
  return {name, Quantity::BANDWIDTH, kind.meaning, size, threads, threads > 1, [=](benchmark::State& state) {
            const Block& block = workshop->block(bytes, huge);
            if (refused(state, block, huge)) {
              return;
            }
            bandwidth(state, block, motion, size);
          }};
}

// Powers of two, and with half steps what lies in the middle of two: 4, 6, 8, 12, 16 KiB.
std::vector<std::uint64_t> sizes(const Options& options, bool half_steps) {
  std::vector<std::uint64_t> found;
  for (std::uint64_t size = options.min_size / READ_UNIT * READ_UNIT; size <= options.max_size; size *= 2) {
    found.push_back(size);
    const std::uint64_t middle = size / 2 * 3 / READ_UNIT * READ_UNIT;
    if (half_steps && middle <= options.max_size) {
      found.push_back(middle);
    }
  }
  return found;
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes % 1024 == 0 && bytes != 0 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    unit++;
  }
  return std::to_string(bytes) + units[unit];
}

std::vector<Case> memory_cases(const Options& options) {
  std::vector<Case> cases;
  const auto workshop = std::make_shared<Workshop>();
  const int threads = static_cast<int>(options.threads);
  for (const std::string& pages : options.pages) {
    for (const std::uint64_t size : sizes(options, true)) {
      cases.push_back(latency_case(workshop, size, pages));
    }
  }
  for (const std::string& pages : options.pages) {
    for (const Kind& kind : KINDS) {
      const std::vector<std::uint64_t> all = sizes(options, false);
      for (const std::uint64_t size : all) {
        cases.push_back(bandwidth_case(workshop, kind, size, pages, 1));
      }
      // What the memory gives when all processors want it: one thread alone seldom gets it all.
      if (threads > 1 && all.back() / options.threads >= READ_UNIT) {
        cases.push_back(bandwidth_case(workshop, kind, all.back(), pages, threads));
      }
    }
  }
  return cases;
}

}  // namespace hostbench

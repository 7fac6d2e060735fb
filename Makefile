# The two commands of the README are `make demo` and `make test`. Everything goes into .venv and results/.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DATA   ?= results
# The suite waits for children and servers more than it computes: files of it run beside each other.
TEST_JOBS ?= 3

DEMO_PACKAGES  := python3-venv gcc libc6-dev rocksdb-tools fio
ENGINE_PACKAGES := liblmdb-dev libleveldb-dev libsqlite3-dev librocksdb-dev libdb-dev libwiredtiger-dev
HOST_PACKAGES  := libbenchmark-dev redis-server redis-tools nginx-light wrk iperf3 openssl xxhash
TEST_PACKAGES  := $(DEMO_PACKAGES) $(ENGINE_PACKAGES) $(HOST_PACKAGES) numactl libjemalloc2 dpkg-dev g++ make git cargo postgresql openssh-server openssh-client iproute2
LEVELDB_PACKAGES := dpkg-dev g++ make cmake libgtest-dev libgmock-dev libsnappy-dev
BUILD_PACKAGES := $(TEST_PACKAGES) $(LEVELDB_PACKAGES) npm tcl libdb5.3-dev ccache libgflags-dev zlib1g-dev liblz4-dev libzstd-dev libbz2-dev

.PHONY: demo test test-builds lint tidy bench clean help

help:                  ## this list
	@sed -n 's/^\([a-z-]*\): .*##/  make \1  /p' $(MAKEFILE_LIST)

demo: $(VENV)/.run     ## a real sweep of the installed RocksDB and fio, and its page
	@.ci/need-packages $(DEMO_PACKAGES)
	$(BIN)/benchrunner sweep rocksdb-flash --versions system --variants None,DIO --scale smoke --data $(DATA)

test: $(VENV)/.test    ## the whole test suite, with a real end-to-end sweep
	@.ci/need-packages $(TEST_PACKAGES)
	$(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadfile --cov --cov-report=term:skip-covered $(PYTEST_ARGS)

test-builds: $(VENV)/.test  ## builds all engines from their sources and runs them (slow)
	@.ci/need-packages $(BUILD_PACKAGES)
	$(BIN)/python -m pytest tests/builds -o addopts="-ra --strict-markers" $(PYTEST_ARGS)

lint: $(VENV)/.dev     ## ruff, mypy, codespell
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/codespell benchrunner docs tests workloads native README.md CHANGELOG.md

# One process for each file: the analyzer reports what is not there when it is given several.
TIDY := xargs -P 2 -I FILE clang-tidy -quiet
# TokuDB's header comes with its build; Google Benchmark's loops leave `_` unread and its cases allocated.
tidy:                  ## clang-tidy over the native programs
	@.ci/need-packages clang-tidy $(ENGINE_PACKAGES) libbenchmark-dev
	ls native/supervisor/*.c | $(TIDY) FILE -- -std=c17 -D_GNU_SOURCE
	ls native/kvbench/*.cc | grep -v tokudb | $(TIDY) FILE -- -std=c++17 '-DKVBENCH_ENGINES=X(null)'
	ls native/hostbench/*.cc | $(TIDY) -checks=-clang-analyzer-deadcode.DeadStores,-clang-analyzer-cplusplus.NewDeleteLeaks FILE -- -std=c++17 -march=native

bench: $(VENV)/.test   ## the figures of benchmarks/README.md, as ratios from interleaved pairs
	@.ci/need-packages $(DEMO_PACKAGES) libbenchmark-dev mbw sysbench linux-perf $(LEVELDB_PACKAGES)
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

clean:                 ## removes the virtual environment; results/ stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

$(VENV)/.pip: .ci/need-packages
	@.ci/need-packages python3-venv
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.run: $(VENV)/.pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable . --group test
	@touch $@ $(VENV)/.run

$(VENV)/.dev: $(VENV)/.pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@ $(VENV)/.test $(VENV)/.run

# `make demo` shows shoal at work; `make test` runs every check. Each sets up .venv by itself (tools/setup.sh).
# Kept to what GNU make 3.81 knows, because that is the make of macOS.

PYTHON_IN_VENV := .venv/bin/python
KERNELS := $(wildcard src/kernels/*/*.cpp src/kernels/*/*.hpp)
BUILT_FROM := pyproject.toml CMakeLists.txt tools/setup.sh $(KERNELS) $(wildcard src/kernels/vendored/*.h)
BUILT_FROM += $(wildcard examples/operations/*)

.DELETE_ON_ERROR:
.PHONY: help demo papers test check format-check lint types doctests fragments docs format bench sanitize libcxx lowest newest windows arm64 container r soak wheel clean FORCE

help:
	@echo "make demo       see shoal at work"
	@echo "make papers     every paper's tables and figures in a quick form, some minutes"
	@echo "make test       every check and every test"
	@echo "make check      formatting, lint, types, doctests, changelog fragments; no tests"
	@echo "make docs       the documentation as web pages, in build/site/VERSION/"
	@echo "make format     format Python and C++ in place"
	@echo "make bench      measure, and write the numbers into README.md"
	@echo "make sanitize   everything compiled under the address, undefined-behaviour and thread sanitizers (Linux)"
	@echo "make libcxx     the same cells by kernels built with libc++, the C++ library of macOS"
	@echo "make lowest     all tests with the lowest version of every dependency; PYTHON chooses the Python"
	@echo "make newest     all tests with the newest, pre-releases too"
	@echo "make r          the package for R: R CMD check, which must not even warn (Debian: r-base-core, r-cran-testthat)"
	@echo "make windows    the tests on Windows, under Wine where that is installed; TESTS=tests/files chooses (Linux)"
	@echo "make arm64      tests of methods and kernels on Linux for arm64, under QEMU where that is installed (Linux)"
	@echo "make container  the image of Containerfile, built and tried without an image registry (Linux, as root)"
	@echo "make soak       fuzzing, random orders, files with traps, secrets, damage and faults, kills; about two hours"
	@echo "make wheel      a wheel for this machine, in dist/"
	@echo "make clean      remove .venv and everything built"

demo: .venv/.ready
	@.venv/bin/shoal demo

# `python -m papers --list` states the quick forms.
papers: .venv/.ready
	@$(PYTHON_IN_VENV) -m papers --quick

# A file stays in one process, since its tests share fixtures.
test: check
	@$(PYTHON_IN_VENV) -m pytest -rs -n auto --maxprocesses 8 --dist loadfile tests

check: format-check lint types doctests fragments docs

format-check: .venv/.ready
	@$(PYTHON_IN_VENV) -m ruff format --quiet --diff . || { echo "Run make format."; exit 1; }
	@.venv/bin/clang-format --dry-run --Werror $(KERNELS) || { echo "Run make format."; exit 1; }

lint: .venv/.ready
	@$(PYTHON_IN_VENV) -m ruff check --quiet .
	@.venv/bin/codespell src docs examples papers benchmarks/*.py r paper tools changelog.d *.md
	@found=$$(.venv/bin/zizmor --quiet --offline --no-progress .github) || { echo "$$found"; exit 1; }

types: .venv/.ready
	@$(PYTHON_IN_VENV) -m mypy
	@$(PYTHON_IN_VENV) -m mypy --platform win32 --cache-dir .mypy_cache/windows --follow-imports skip \
		src/shoal/system/windows.py

doctests: .venv/.ready
	@$(PYTHON_IN_VENV) -m pytest --quiet --no-header src/shoal papers

# A fragment with a name that towncrier would pass over is an error here.
fragments: .venv/.ready
	@said=$$($(PYTHON_IN_VENV) -m towncrier build --draft --version next 2>&1) || { echo "$$said"; exit 1; }

docs: .venv-docs/.ready
	@.venv-docs/bin/python tools/documentation.py

format: .venv/.ready
	@$(PYTHON_IN_VENV) -m ruff check --quiet --fix-only .
	@$(PYTHON_IN_VENV) -m ruff format --quiet .
	@.venv/bin/clang-format -i $(KERNELS)

bench: .venv/.ready
	@$(PYTHON_IN_VENV) benchmarks/bench_partition.py
	@$(PYTHON_IN_VENV) benchmarks/table.py
	@$(PYTHON_IN_VENV) benchmarks/bench_stream.py
	@$(PYTHON_IN_VENV) benchmarks/bench_disk.py --full

sanitize: .venv/.ready .venv-sanitize/.ready
	@$(PYTHON_IN_VENV) tools/sanitize.py .venv-sanitize --output benchmarks/results/sanitize.json

libcxx: .venv/.ready
	@$(PYTHON_IN_VENV) tools/libcxx.py

lowest newest: %: .venv-%/.ready
	@.venv-$*/bin/python -m pytest -rs -n auto --maxprocesses 8 --dist loadfile tests

r: .venv/.ready
	@rm -rf build/r && mkdir -p build/r
	@cd build/r && R CMD build ../../r > build.log && \
		SHOAL_PYTHON=$(CURDIR)/$(PYTHON_IN_VENV) R CMD check --no-manual shoal_*.tar.gz > check.log; \
		grep -q '^Status: OK' check.log || { cat *.log; exit 1; }

TESTS ?= tests src/shoal papers
windows: .venv/.ready
	@tools/windows/test.sh build/windows -q -rs $(TESTS)

arm64: .venv/.ready
	@tools/arm64/test.sh build/arm64 -q -rs tests/methods tests/kernels/test_kernels.py

container:
	@tools/container.sh

# SOAK_SECONDS=60 WORKER_SECONDS=60 WORKER_KILLS=30 SPARK_KILLS=3 makes it short.
SOAK_SECONDS ?= 600
WORKER_SECONDS ?= 1800
WORKER_KILLS ?= 1000
SPARK_KILLS ?= 50
soak: .venv/.ready
	@$(PYTHON_IN_VENV) tests/fuzz/fuzz.py --seconds $(SOAK_SECONDS) --output benchmarks/results/fuzz.json
	@$(PYTHON_IN_VENV) tests/soak/rounds.py --seconds $(SOAK_SECONDS) --output benchmarks/results/rounds.json
	@$(PYTHON_IN_VENV) tests/office_grammar.py --files 300
	@$(PYTHON_IN_VENV) tests/soak/evening.py --kills 200
	@$(PYTHON_IN_VENV) tests/soak/worker.py --seconds $(WORKER_SECONDS) --kills $(WORKER_KILLS) \
		--out benchmarks/results/soak.json
	@$(PYTHON_IN_VENV) tests/soak/spark_stream.py --kills $(SPARK_KILLS) --output benchmarks/results/spark_stream_kills.json

wheel: .venv/.ready
	@$(PYTHON_IN_VENV) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

clean:
	rm -rf .venv .venv-* build dist wheelhouse src/shoal/_kernels.pyi
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src papers tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2> /dev/null || true

# The stub of the compiled module goes beside the sources, where the type checker looks for it.
.venv/.ready: $(BUILT_FROM)
	@sh tools/setup.sh .venv --group dev
	@cp .venv/lib/python3*/site-packages/shoal/_kernels.pyi src/shoal/

.venv-sanitize/.ready: $(BUILT_FROM)
	@sh tools/setup.sh .venv-sanitize --group test -Cbuild-dir=build/sanitize -Ccmake.define.SHOAL_SANITIZE=ON

.venv-lowest/.ready: .venv/.ready $(BUILT_FROM)
	@mkdir -p build
	@.venv/bin/uv pip compile --quiet --no-header --no-annotate --python $(PYTHON_IN_VENV) --resolution lowest-direct \
		--all-extras --group test --output-file build/lowest.txt pyproject.toml
	@sh tools/setup.sh .venv-lowest --group test --constraint build/lowest.txt

.venv-newest/.ready: $(BUILT_FROM)
	@sh tools/setup.sh .venv-newest --group test --upgrade --pre

.venv-docs/.ready: pyproject.toml | .venv/.ready
	@$(PYTHON_IN_VENV) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install --quiet --quiet --disable-pip-version-check --upgrade pip
	@.venv-docs/bin/python -m pip install --quiet --quiet --disable-pip-version-check --group docs
	@pwd -P > .venv-docs/.ready

# The stamps hold the path of the checkout: a virtual environment does not survive being moved.
ENVIRONMENTS := $(wildcard .venv/.ready .venv-*/.ready)
$(foreach stamp,$(ENVIRONMENTS),$(if $(filter-out $(CURDIR),$(shell cat $(stamp))),$(eval $(stamp): FORCE)))
FORCE:

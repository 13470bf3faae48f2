# The front door. Every target installs what it needs first, so that each works on a fresh Debian 12 or 13 machine.
SHELL := /bin/bash
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)
PRESET ?= release
BUILD := build/$(PRESET)

.PHONY: help setup configure build test web python package quickstart sanitize fuzz format lint clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: ## install the Debian packages the project needs (as root, or through sudo)
	@scripts/setup

configure: setup
	@mkdir -p build
	@cmake --preset $(PRESET) > build/configure.log 2>&1 || { cat build/configure.log; exit 1; }

build: configure ## build the program: build/release/routing (PRESET=debug or asan-ubsan for the others)
	cmake --build $(BUILD) --target routing -j $(JOBS)

test: configure ## build everything and run every test
	@scripts/setup packages-browser.txt
	@command -v node >/dev/null && command -v npm >/dev/null || scripts/setup packages-node.txt
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure

web: configure ## pack the page of routing serve into the program, for which it needs Node.js 18 or later with npm
	@command -v node >/dev/null && command -v npm >/dev/null || scripts/setup packages-node.txt
	@scripts/build-page --required web/dist
	@rm -f $(BUILD)/web/page_files.cpp
	cmake --build $(BUILD) --target routing -j $(JOBS)

python: configure ## build and test the Python package and pack its wheel: build/release/python/dist
	cmake --build $(BUILD) --target routing routing_python attend_file -j $(JOBS)
	ctest --test-dir $(BUILD) -R '^python\.' -j $(JOBS) --output-on-failure
	/usr/bin/python3 -m pip wheel --quiet --no-index --no-deps --wheel-dir $(BUILD)/python/dist ./python
	@ls $(BUILD)/python/dist/*.whl

package: build ## build the Debian packages (program, library, Python): build/release/packages (docs/installing.md)
	cmake --build $(BUILD) --target routing_python -j $(JOBS)
	@scripts/setup packages-package.txt
	@rm -rf $(BUILD)/packages
	cd $(BUILD) && cpack -G DEB

quickstart: build ## build, train a small model for three minutes, evaluate it, draw curves and patterns: runs/quickstart
	$(BUILD)/routing quickstart --out runs/quickstart

sanitize: setup ## run the tests without torch under the sanitizers of memory, undefined behaviour and threads
	JOBS=$(JOBS) scripts/sanitize memory
	JOBS=$(JOBS) scripts/sanitize threads

fuzz: setup ## run Clang's fuzzer for a minute over each reader of files and requests (scripts/fuzz)
	@scripts/setup packages-fuzz.txt
	JOBS=$(JOBS) scripts/fuzz

format: setup ## rewrite the C++ sources with clang-format
	@clang-format --version | grep -q 'version 14\.' || { scripts/check-format; exit 1; }
	git ls-files -co --exclude-standard '*.cpp' '*.h' | xargs clang-format -i

lint: setup ## check the formatting and run clang-tidy; warnings are errors
	scripts/lint

clean: ## remove everything that was built
	rm -rf build

# Ephor: build, try, test, measure. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
CARGO ?= cargo
PROFILE := --release
PLUGINS := target/plugins
HOSTILE := target/hostile

.PHONY: help build plugins hostile toolchain demo test bench corpus clients test-clients check-long fmt lint clean

help:
	@echo 'make build       ephor, ephor-agent, ephor-shim in target/release, policies in $(PLUGINS)'
	@echo 'make demo        a controller, three agents, eight jobs and a policy swap, on this machine'
	@echo 'make test        every test that runs in minutes'
	@echo 'make bench       figures as JSON, one object a line; ONLY=name for one of them'
	@echo 'make corpus      scripts with what Slurm made of them, against a live controller; FILE=... names them'
	@echo 'make test-clients  clients of Slurm from PyPI, unchanged, against a live cluster'
	@echo 'make check-long  the tests that take long'
	@echo 'make lint        formatting and clippy, as CI runs them'

toolchain:
	@command -v $(CARGO) >/dev/null || { echo 'Rust is missing: install rustup from your distribution or rustup.rs, then run make again'; exit 1; }
	@command -v cc >/dev/null || { echo 'a C compiler is missing: install gcc (Debian: apt-get install gcc)'; exit 1; }

# The policies come first: the host embeds them.
plugins: toolchain
	$(CARGO) run $(PROFILE) -q -p ephor-policy-build -- --all plugins -o $(PLUGINS)

hostile: toolchain
	$(CARGO) run $(PROFILE) -q -p ephor-policy-build -- --all tests/hostile -o $(HOSTILE)

# Libraries are named for the one that tests load: the stand-in for NVIDIA's.
build: plugins
	$(CARGO) build $(PROFILE) --workspace --lib --bins

demo: build
	./examples/demo.sh

# One profile and one feature set for the workspace, so that nothing is built twice; the policies' own tests run natively
# with overflow checks.
test: build hostile
	$(CARGO) test -q --manifest-path plugins/Cargo.toml --workspace
	$(CARGO) test -q --manifest-path examples/policies/weekend-limit/Cargo.toml
	$(CARGO) test $(PROFILE) --workspace --no-fail-fast

bench: build
	target/release/ephor-bench $(if $(ONLY),--only $(ONLY))

corpus: build
	target/release/ephor-corpus $(or $(FILE),../shared/sbatch/corpus.yaml)

# Versions that were tried; another one may be named: make test-clients SUBMITIT=...
SUBMITIT ?= 1.5.4
CLIENTS := target/clients

clients:
	@command -v python3 >/dev/null || { echo 'Python is missing: install python3 and python3-venv from your distribution'; exit 1; }
	test -x $(CLIENTS)/bin/pip || python3 -m venv $(CLIENTS)
	$(CLIENTS)/bin/pip install --quiet --disable-pip-version-check submitit==$(SUBMITIT)

test-clients: build clients
	EPHOR_CLIENTS=$(abspath $(CLIENTS)) $(CARGO) test $(PROFILE) --workspace --test clients -- --nocapture

check-long: build hostile
	EPHOR_LONG=1 PROPTEST_CASES=20000 $(CARGO) test $(PROFILE) --workspace --no-fail-fast

fmt:
	$(CARGO) fmt --all
	$(CARGO) fmt --all --manifest-path plugins/Cargo.toml

lint:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --check --manifest-path plugins/Cargo.toml
	$(CARGO) fmt --all --check --manifest-path tests/hostile/Cargo.toml
	$(CARGO) clippy $(PROFILE) --workspace --all-targets -- -D warnings -A clippy::unwrap_used
	$(CARGO) clippy $(PROFILE) --workspace --lib --bins -- -D warnings

clean:
	$(CARGO) clean
	$(CARGO) clean --manifest-path plugins/Cargo.toml

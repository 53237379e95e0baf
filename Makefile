# Correx Actors. `make` lists what can be done; `make ci` is what CI runs.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO ?= go
BIN := bin
BINARY := $(BIN)/correx-actors

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)
BUF_VERSION := v1.75.0
BUF := $(BIN)/buf-$(BUF_VERSION)
GOVULNCHECK_VERSION := v1.9.0
GOVULNCHECK := $(BIN)/govulncheck-$(GOVULNCHECK_VERSION)

# Arguments for `make run`, for example ARGS="--listen 127.0.0.1:8080".
ARGS ?=
# Packages of test, race, cover and bench.
PKG ?= ./...
# Time for each fuzz target.
FUZZTIME ?= 30s
# Which benchmarks, how long, and how often each.
BENCH ?= .
BENCHTIME ?= 1s
BENCHCOUNT ?= 1
# How often soak repeats the tests of everything that runs at once.
SOAK_COUNT ?= 50
# Vulnerability database of `make vuln`: empty = the public one, file:///…, or module = made of golang.org/x/vulndb.
VULN_DB ?=

# The race detector needs cgo and a C compiler. Without them the tests run all the same.
RACE := $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v $$($(GO) env CC) >/dev/null 2>&1 && echo -race)
TEST := $(GO) test $(RACE) -shuffle=on

REWRITE_PKGS = $(shell grep -rl 'cockroachdb/datadriven"' --include='*_test.go' . | xargs -r -n1 dirname | sort -u)
PEERS := testkit/peers
LLMOCK := $(CURDIR)/$(PEERS)/node_modules/.bin/llmock

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Not "go run": that fails when Ctrl-C stops the server in good order.
.PHONY: run
run: build ## Build and start the server (ARGS="…" are its flags)
	$(BINARY) serve $(ARGS)

.PHONY: build
build: ## Build bin/correx-actors
	$(GO) build -o $(BINARY) ./cmd/correx-actors

##@ Test

.PHONY: test
test: ## Run all tests, with the race detector where there is a C compiler
	@$(if $(RACE),,echo "note: no cgo or no C compiler here, so the tests run without the race detector")
	$(TEST) $(PKG)

.PHONY: test-aimock
test-aimock: ## Run the tests against an independent model server (needs npm)
	@if ! { command -v npm && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; } >/dev/null 2>&1; then \
		echo "NOT RUN: the tests against @copilotkit/aimock need npm with Node 20.15 or newer; install them and run 'make test-aimock' again" >&2; \
		exit 1; \
	fi
	cd $(PEERS) && npm ci
	CORREX_AIMOCK=$(LLMOCK) $(TEST) -count=1 -run AIMock -v ./cmd/correx-actors

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (30s)
	@.ci/fuzz $(FUZZTIME)

.PHONY: fuzz-short
fuzz-short: ## Fuzz each target for five seconds, the guard of provider streams for thirty
	@.ci/fuzz 5s 30s

.PHONY: soak
soak: ## Long walks of the rules, 500 kills of the server, then the tests of all that runs at once SOAK_COUNT (50) times
	CORREX_SOAK=1 $(GO) test -count=1 -timeout 60m ./core/...
	CORREX_SOAK=1 $(GO) test -count=1 -timeout 60m -run Chaos -v ./cmd/correx-actors
	.ci/fuzz 30s 10m
	$(TEST) -count=$(SOAK_COUNT) -failfast -timeout 60m ./actors/... ./persistence/... ./inference/... ./testkit/...

.PHONY: cover
cover: ## Write coverage.out over all packages and print the total
	$(GO) test -coverpkg=./... -coverprofile=coverage.out $(PKG) >/dev/null
	@$(GO) tool cover -func=coverage.out | tail -n 1

.PHONY: bench
bench: ## Run the benchmarks (BENCH, BENCHTIME, BENCHCOUNT)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -count $(BENCHCOUNT) -timeout 60m $(PKG)

.PHONY: rewrite
rewrite: ## Rewrite the expectations of the scenario tests; read the diff
	$(GO) test -count=1 $(REWRITE_PKGS) -rewrite

.PHONY: docs
docs: ## Write the parts of the documents that are made of the code
	$(GO) test -count=1 -parallel=1 . -run 'TestProtocolShows|TestReadme|TestOperationsLists' -rewrite-docs

##@ Check

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format all Go files
	$(GOLANGCI_LINT) fmt

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters
	$(GOLANGCI_LINT) run

.PHONY: generate
generate: $(BUF) ## Generate Go from the schema
	$(BUF) generate

.PHONY: generate-check
generate-check: $(BUF) ## Check the schema: lint, drift of the generated Go, breaking changes
	BUF=$(BUF) .ci/schema

.PHONY: tidy-check
tidy-check: ## Check that go.mod and go.sum are tidy and the modules unchanged
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: vuln
vuln: $(GOVULNCHECK) ## Look for known vulnerabilities (VULN_DB=module where only module proxies are reached)
	@GOVULNCHECK=$(GOVULNCHECK) VULN_DB=$(VULN_DB) .ci/vulns

.PHONY: ci
ci: ## Run all checks and print how long each took
	@.ci/stages tidy-check generate-check lint build test fuzz-short test-aimock

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN) coverage.out $(PEERS)/node_modules

# Tools are built once, from the pinned version; the name holds the version, so a new one is built anew.
define install-tool
	@mkdir -p $(BIN)
	@echo "building $@ (once; a few minutes on a small machine)"
	@dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT; \
		GOFLAGS=-mod=mod GOBIN=$$dir $(GO) install $(1)@$(2); mv $$dir/* $@
endef

$(GOLANGCI_LINT):
	$(call install-tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_LINT_VERSION))

$(BUF):
	$(call install-tool,github.com/bufbuild/buf/cmd/buf,$(BUF_VERSION))

$(GOVULNCHECK):
	$(call install-tool,golang.org/x/vuln/cmd/govulncheck,$(GOVULNCHECK_VERSION))

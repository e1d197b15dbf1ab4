# `make` alone lists the targets.
.DEFAULT_GOAL := help

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT := $(shell git rev-parse HEAD 2>/dev/null)
DATE := $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
LDFLAGS := -s -w -X github.com/pawlrun/pawl/internal/cli.version=$(VERSION) -X github.com/pawlrun/pawl/internal/cli.commit=$(COMMIT) -X github.com/pawlrun/pawl/internal/cli.date=$(DATE)

# Pinned, and built once into bin/tools by the Go toolchain.
LINT_VERSION := v2.14.0
LINT := bin/tools/golangci-lint-$(LINT_VERSION)

# How long one package's tests may take before they are called hung.
TEST_TIMEOUT ?= 25m
# Our own code is watched for races. SQLite, QuickJS and esbuild are C and a
# compiler in Go's clothes: watching them costs four times the tests themselves.
# A mutex tells the detector by itself what it orders. Watching its inside as well
# finds nothing more, and SQLite locks one for every piece of memory.
# In GOFLAGS, because a test builds the program, too, and it is compiled once.
RACE := -race $(foreach package,modernc.org/... github.com/evanw/esbuild/... internal/sync,-gcflags=$(package)=-race=false)
# A program that is watched would sleep for a second before it ends.
export GORACE ?= atexit_sleep_ms=0
# What to test: make test PKG=./internal/queue
PKG ?= ./...
# The longest first, so that no core idles behind the last one. Several at once,
# because most of them wait more than they compute. What vet finds, make check
# finds.
LONGEST := $(addprefix ./,internal/workflow internal/web e2e internal/api internal/script internal/schedule internal/store internal/queue internal/source)
PACKAGES = $(if $(filter ./...,$(PKG)),$(LONGEST)) $(PKG)
# Built aside and moved, so that one that runs already is not written over.
# Without cgo, so that it shares what the program itself is built from.
WITH_POSTGRES = mkdir -p bin/tools && CGO_ENABLED=0 go build -o bin/tools/with-postgres.$$$$ ./internal/pgtest/with && mv bin/tools/with-postgres.$$$$ bin/tools/with-postgres
DIST := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
FUZZ_TIME := 20s

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## start Pawl on a SQLite file
	go run ./cmd/pawl serve

.PHONY: demo
demo: ## start Pawl with live examples, no network needed
	go run ./cmd/pawl demo

.PHONY: build
build: ## build bin/pawl, one static program
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/pawl ./cmd/pawl

.PHONY: dist
dist: ## build the programs of a release into dist/, with checksums and licences
	@rm -rf dist && mkdir dist
	@for target in $(DIST); do \
		name=dist/pawl-$(VERSION)-$${target%/*}-$${target#*/}; echo "build $$name"; \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} go build -trimpath -ldflags '$(LDFLAGS)' -o $$name ./cmd/pawl || exit 1; \
	done
	@go run ./internal/notice > dist/NOTICES.txt && cp LICENSE dist/
	@cd dist && (sha256sum pawl-* 2>/dev/null || shasum -a 256 pawl-*) > SHA256SUMS && cat SHA256SUMS

.PHONY: test
test: ## run all tests, on SQLite and on a private PostgreSQL
	@scripts/ensure-test-tools.sh
	@$(WITH_POSTGRES)
	GOFLAGS="$$(go env GOFLAGS) $(RACE)" bin/tools/with-postgres -fast -- go test -vet=off -p 4 -timeout $(TEST_TIMEOUT) $(PACKAGES)

# What needs PostgreSQL is left out, and what takes long: real servers, browsers,
# Node, clocks, and limits that are reached. What has not changed is not run again.
QUICK = $(filter-out %/e2e %/internal/tool/mcp %/internal/pgtest %/internal/demo %/internal/executor/langgraph,$(shell go list ./...))
SLOW := TestAlertRulesFire|TestNothingThatIsReadScansWhatGrows|TestAServerKeepsTheClockOfWorkers|TestEndlessScriptsEnd|TestDescribeIsLimited|TestErrorAtEveryStep
.PHONY: quick
quick: ## run most tests in a minute: SQLite, no race detector, no browser, no Node
	PAWL_TEST_POSTGRES=none go test -vet=off -p 4 -timeout $(TEST_TIMEOUT) -skip '$(SLOW)' $(if $(filter ./...,$(PKG)),$(QUICK),$(PKG))

.PHONY: pg
pg: ## keep a private PostgreSQL for your own go test; prints the line that names it
	@$(WITH_POSTGRES)
	@bin/tools/with-postgres -fast

.PHONY: docs
docs: ## write docs/reference and docs/schemas anew, from commands, settings, definitions and routes
	@mkdir -p docs/reference
	go test ./internal/cli -run '^TestReferenceIsUpToDate$$' -update

.PHONY: check
check: $(LINT) ## look for mistakes: format, vet, lint
	@unformatted=$$(gofmt -l .) && if [ -n "$$unformatted" ]; then \
		echo "not formatted; run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	$(LINT) run

$(LINT):
	GOFLAGS= GOBIN=$(CURDIR)/bin/tools go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv bin/tools/golangci-lint $@

.PHONY: bench
bench: ## measure the parts of Pawl
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-queue
bench-queue: ## measure the queue beside its peers and the raw limit
	@scripts/ensure-test-tools.sh
	cd bench && go run ./queue

.PHONY: bench-worker
bench-worker: ## measure workers over HTTP beside River and Graphile Worker
	@scripts/ensure-test-tools.sh
	cd bench && go run ./queue -workers

.PHONY: bench-workflow
bench-workflow: ## measure workflows beside the raw limits and peers
	@scripts/ensure-test-tools.sh
	@$(WITH_POSTGRES)
	bin/tools/with-postgres -- sh -c 'cd bench && go run ./workflow -out WORKFLOWS.md'

.PHONY: bench-source
bench-source: ## measure sources beside the raw limits
	@scripts/ensure-test-tools.sh
	@$(WITH_POSTGRES)
	bin/tools/with-postgres -- sh -c 'cd bench && go run ./source -out SOURCES.md'

.PHONY: bench-schedule
bench-schedule: ## measure schedules: how late, and what waiting costs
	@scripts/ensure-test-tools.sh
	@$(WITH_POSTGRES)
	bin/tools/with-postgres -- sh -c 'cd bench && go run ./schedule -out SCHEDULES.md'

.PHONY: bench-hook
bench-hook: ## measure webhooks that come in, durable before the answer
	@scripts/ensure-test-tools.sh
	@$(WITH_POSTGRES)
	bin/tools/with-postgres -- sh -c 'cd bench && go run ./hook -out HOOKS.md'

.PHONY: bench-door
bench-door: ## measure jobs that applications add in their own transactions, beside River, Graphile Worker and a plain insert
	@scripts/ensure-test-tools.sh
	@$(WITH_POSTGRES)
	bin/tools/with-postgres -- sh -c 'cd bench && go run ./door -out DOOR.md'

.PHONY: bench-pages
bench-pages: RUNS ?= 1000000
bench-pages: ## measure pages and lists at 10,000 lanes and a million runs, or RUNS=10000000
	@scripts/ensure-test-tools.sh
	@go build -o bin/tools/with-postgres ./internal/pgtest/with
	bin/tools/with-postgres -- sh -c 'cd bench && go run ./page -runs $(RUNS) -out $(if $(filter 1000000,$(RUNS)),PAGES.md,PAGES-$(RUNS).md)'

.PHONY: bench-prune
bench-prune: ROWS ?= 1000000
bench-prune: ## measure how soon runs begin while history is pruned, ROWS rows of it
	@scripts/ensure-test-tools.sh
	@go build -o bin/tools/with-postgres ./internal/pgtest/with
	bin/tools/with-postgres -- sh -c 'cd bench && go run ./workflow -parts prune -rows $(ROWS) -out PRUNE.md'

.PHONY: fuzz
fuzz: ## feed random input to every parser and every door, FUZZ_TIME each
	@scripts/ensure-test-tools.sh
	@$(WITH_POSTGRES)
	@bin/tools/with-postgres -fast -- scripts/fuzz.sh $(FUZZ_TIME)

# Packages that keep promises: a fault in them must be noticed by their tests.
PROMISES := $(addprefix ./internal/,run ledger queue store workflow source schedule execution) $(addprefix ./,$(wildcard internal/store/*store))
SAMPLE := 100

SEEDS := 10000
FROM := 1
CHAOS_SECONDS := 600
# Empty draws one, and says which.
CHAOS_SEED :=

.PHONY: chaos
chaos: ## kill, freeze and disconnect real nodes under load for CHAOS_SECONDS, as CHAOS_SEED says
	@scripts/ensure-test-tools.sh
	go run ./internal/chaos -seconds $(CHAOS_SECONDS) $(if $(CHAOS_SEED),-seed $(CHAOS_SEED))

.PHONY: simulate
simulate: ## live SEEDS histories of whole clusters in simulated time, from seed FROM on
	PAWL_TEST_POSTGRES=none go test -vet=off -timeout 24h ./internal/simulate -run '^TestHistories$$' -v -seeds $(SEEDS) -from $(FROM)

.PHONY: plant
plant: ## break the code in known ways; tell within how many histories each is found
	go run ./internal/simulate/plant

.PHONY: mutants
mutants: ## break the code in many small ways, SAMPLE for each package; tell what no test notices
	@scripts/ensure-test-tools.sh
	@$(WITH_POSTGRES)
	bin/tools/with-postgres -fast -- go run ./internal/mutant/hunt -spend 60s -sample $(SAMPLE) $(PROMISES)

.PHONY: clean
clean: ## remove what make built
	rm -rf bin dist

# Everything a developer runs. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/berth-dev/berth/internal/cli.version=$(VERSION)
# gRPC's traces call methods by name, so that the linker would keep every exported one.
TAGS := grpcnotrace
TOOL := go tool -modfile=tools/go.mod
LABTOOL := go tool -modfile=../tools/go.mod
E2E = cd lab && $(LABTOOL) gotestsum --format testname -- -vet=off -p 2 -parallel 100 -count=1 -timeout 60m $(E2EFLAGS)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.PHONY: build
build: ## build bin/berth, one static binary
	CGO_ENABLED=0 go build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/berth ./cmd/berth

.PHONY: demo
demo: ## boot a node from CustomData in a local lab and show it Ready (root; stays up)
	cd lab && go run ./cmd/berth-lab demo

.PHONY: demo-down
demo-down: ## stop what make demo left up
	cd lab && go run ./cmd/berth-lab down --lab demo

.PHONY: setup
setup: ## install the Debian packages whose programs tests, lab and bench call (root)
	cd lab && go run ./cmd/setup

# Only what tests call that start no machine.
.PHONY: setup-tests
setup-tests:
	cd lab && go run ./cmd/setup tests

.PHONY: fresh
fresh: setup ## prove on a bare Debian that setup installs all, and that unit, lint and modules need no more (root)
	.ci/fresh

.PHONY: test
test: setup lint ## everything: lint, unit tests with -race, end-to-end tests in the lab (root)
	cd lab && go run ./cmd/berth-lab prepare
	$(MAKE) -j2 emulated others

# The tests of emulated machines need one core, for as long as all others take.
.PHONY: emulated others nodes
emulated:
	$(E2E) ./e2e/vm
others:
	$(MAKE) race
	$(MAKE) faults
	$(MAKE) modules
	$(MAKE) nodes
nodes:
	$(E2E) ./e2e ./e2e/systemd

.PHONY: unit
unit: setup-tests ## the quick half: vet and unit tests, with a sample of the property tests
	go vet ./...
	go test -vet=off -tags sample $(UNITFLAGS) ./...

.PHONY: race
race: setup-tests ## unit tests under the race detector
	go test -vet=off -race -timeout 30m ./...

.PHONY: faults
faults: setup-tests ## the property tests with a fault at every effect, of which unit and race have a sample
	go test -vet=off -timeout 40m ./internal/faults ./internal/converge/... ./internal/agent/selfupdate ./internal/contract/aks

# At the end of FUZZTIME go test may fail with nothing found: golang/go#75804, until Go 1.27.
FUZZTIME ?= 20s
.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME, one after the other; what one finds is in its testdata/fuzz
	@failed=; out=$$(mktemp); trap 'rm -f "$$out"' EXIT; \
	while IFS=: read -r file _ target; do \
		target=$${target#func }; target=$${target%%(*}; dir=$${file%/*}; \
		echo "== $$dir $$target"; \
		go -C "$$dir" test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $(FUZZFLAGS) . | tee "$$out" || \
			{ grep -q '^    context deadline exceeded$$' "$$out" && ! grep -q 'Failing input written' "$$out"; } || failed="$$failed $$dir:$$target"; \
	done < <(grep -rn --include='*_test.go' '^func Fuzz' . | sort); \
	for f in $$failed; do echo "found something: $$f"; done; test -z "$$failed"

.PHONY: modules
modules: setup-tests ## build and test the nested modules that need no machine
	go -C tools test ./...
	cd pkg/nodeconfigutils/examples/azure && go vet ./... && go test ./...
	go -C lab/images/coredns test ./...
	cd lab && go vet ./... && go test $$(go list ./... | grep -v /e2e)

.PHONY: e2e
e2e: setup ## end-to-end tests on real systemd, containerd, kubelet and API server (root)
	cd lab && go run ./cmd/berth-lab prepare
	$(E2E) ./e2e/vm ./e2e ./e2e/systemd

.PHONY: lint
lint: ## golangci-lint with the layer rules
	$(TOOL) golangci-lint run ./...
	cd lab && $(LABTOOL) golangci-lint run ./...

.PHONY: bench
bench: setup ## ratios against kubeadm join and reset and another day's engine, and the limits; BENCHFLAGS='--only engine' for some (root)
	cd lab && go run ./cmd/berth-lab bench $(BENCHFLAGS)

.PHONY: generate
generate: ## regenerate the contract's Go code and the generated docs
	go generate ./api/...
	go test ./internal/exitcode ./internal/cli ./internal/contract/aks/decode -run "RegistryPage|Generated|Pages" -update

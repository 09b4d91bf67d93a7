# The front door: every target is one script of scripts/. See scripts/README.md.
PREFIX ?= /usr/local
PYTHON ?= /usr/bin/python3
export PYTHON

all:
	@scripts/setup build
	@scripts/build

setup:
	@scripts/setup all

demo:
	@scripts/setup demo
	@scripts/build
	@scripts/demo

test:
	@scripts/setup test
	@$(PYTHON) scripts/test

check:
	@scripts/setup build
	@$(PYTHON) scripts/test checks

sanitize:
	@scripts/setup build
	@$(PYTHON) scripts/test sanitize

tsan:
	@scripts/setup build
	@$(PYTHON) scripts/test tsan

fuzz:
	@scripts/setup test
	@scripts/fuzz

lint:
	@scripts/setup lint
	@scripts/lint

bench:
	@scripts/setup bench
	@scripts/build
	@ninja -C build/meson bench-programs
	@scripts/bench --build build/meson

# SEED=1 CASES=50 ARGS="--daily": see bench/curves/README.md
bench-curves:
	@scripts/setup build
	@scripts/build
	@ninja -C build/meson bench/bench-curves
	@build/meson/bench/bench-curves --seed "$(or $(SEED),1)" --cases "$(or $(CASES),50)" $(ARGS)

install:
	@scripts/build --prefix "$(PREFIX)"
	@meson install -C build/meson --no-rebuild --quiet --destdir "$(abspath $(DESTDIR))"

deb:
	@scripts/setup deb
	@scripts/deb

clean:
	@rm -rf build

.PHONY: all setup demo test check sanitize tsan fuzz lint bench bench-curves install deb clean

# SPDX-License-Identifier: Apache-2.0
# Two commands do everything: 'make prove' and 'make check'. Meson does the building.

BUILD ?= build
MESON_ARGS ?=
PEERPATH = $(BUILD)/src/cli/peerpath

.PHONY: all deps build prove simulate check clean install packages

all: build

# Installs what is missing (root and apt-get), or names it.
deps:
	@sh tools/deps.sh

build: deps
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) $(MESON_ARGS)
	@ninja -C $(BUILD)

# The main job, here and now. Succeeds when a verdict was produced; the verdict is the text. Where
# there is no hca, gate 2 is then exercised on the software device, and must pass there.
prove: build
	@$(PEERPATH) prove --force --output $(BUILD)/prove.tar.zst; code=$$?; \
	echo "peerpath exit code: $$code"; \
	test $$code -le 2 && $(PEERPATH) bundle verify $(BUILD)/prove.tar.zst
	@test -n "$$(ls /sys/class/infiniband 2>/dev/null)" || $(MAKE) --no-print-directory simulate

simulate:
	@echo; echo "No hca here: the chain of gate 2 on the software device, which proves nothing about hardware."
	@$(PEERPATH) prove --simulate --size 8,4K,64K,1M --duration 50ms --force --output $(BUILD)/simulated.tar.zst
	@$(PEERPATH) bundle verify $(BUILD)/simulated.tar.zst

check: build
	@python3 tools/run-tests.py $(BUILD)

# Debian packages, and a tarball of the software device, in $(BUILD)-packages.
packages:
	@sh tools/deps.sh 'cmd:dh debhelper'
	@test -f $(BUILD)-packages/build.ninja || meson setup $(BUILD)-packages --prefix=/usr --buildtype=release -Dtests=false $(MESON_ARGS)
	@ninja -C $(BUILD)-packages
	@sh tools/package.sh $(BUILD)-packages $(BUILD)-packages/out

install: build
	@ninja -C $(BUILD) install

clean:
	rm -rf $(BUILD) $(BUILD)-packages

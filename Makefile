# A make inside make (`make test` tries `make demo`) prints what a person's own does.
MAKEFLAGS += --no-print-directory

# Each of these sets up what it needs first; that is quick when nothing has changed.
.PHONY: setup demo test attacks alone wine java check docs pictures site bench constraints build clean

setup:
	@scripts/setup.sh

# A real job on a private desktop: nobody's screen is touched, no model and no key.
demo: setup
	@rm -rf build/demo && mkdir -p build/demo
	@echo 'To give an MCP client such a desktop (`handrail serve --desktop private`), put this into its configuration:'
	@.venv/bin/handrail mcp install --desktop private --print
	@echo
	@.venv/bin/handrail replay demo/desktop.yaml --config demo/handrail.toml --workspace build/demo \
		--desktop private --deny --report build/demo/report.html

# The tests work real programs: what fails is run once more, and the summary names it (RERUN), so that it is mended.
test: setup
	.venv/bin/pytest -n logical --maxprocesses 4 --dist loadfile --reruns 1 --max-suite-reruns 10 --rerun-show-tracebacks -raR

# Attacks on the sandbox made from every row and option of the table of programs; `make test` runs a part of them. All of them take hours.
attacks: setup
	HANDRAIL_ATTACKS=all .venv/bin/pytest -n logical --maxprocesses 4 tests/plugins/cli/attacks

# Each package's tests with its wheel alone: make alone PACKAGES="core files" PYTHONS="3.11 3.13". All of them take hours.
alone: setup
	.venv/bin/python -m tests.installs.alone $(PACKAGES) $(PYTHONS)

# The code for Windows, on a Windows Python under Wine; needs Debian packages of its own (docs/platforms.md).
wine: setup
	@scripts/wine.sh

# A window of Swing, which needs Debian packages of its own, too.
java: setup
	@scripts/java.sh

check: setup
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/pyright
	.venv/bin/lint-imports --no-cache
	.venv/bin/python scripts/check_workspace.py
	.venv/bin/python -m scripts.check_structure
	.venv/bin/python -m scripts.make_docs --check

# The pages that are made from the code.
docs: setup
	.venv/bin/python -m scripts.make_docs
	.venv/bin/python -m tests.end_to_end.troubles.page

# The pictures of the console that the documentation shows.
pictures: setup
	.venv/bin/python -m tests.plugins.console.pictures

# The documentation as a site, in build/site; a link that leads nowhere is an error.
site: setup
	.venv/bin/python -m scripts.make_site

bench:
	@scripts/setup.sh bench
	.venv-bench/bin/python -m benchmarks

# Where `make build` puts what it builds.
DIST = dist

# Keeps the versions there are where they fit; `make constraints UPGRADE=1` takes the newest.
constraints: setup
	scripts/constraints.sh $(if $(UPGRADE),--upgrade)

build: setup
	@rm -f $(DIST)/handrail*.whl $(DIST)/handrail*.tar.gz
	.venv/bin/uv build -q --all-packages --no-build-isolation --python .venv/bin/python --out-dir $(DIST)

clean:
	rm -rf .venv .venv-bench .uv build dist tests/node/node_modules benchmarks/node/node_modules

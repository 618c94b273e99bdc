# A machine needs python3, make and a C++ compiler; tools/install.py installs the rest.

PYTHON ?= python3
# Additional arguments of pytest: make test PYTEST_ARGS="-k config -x"
PYTEST_ARGS ?=

BIN := .venv/bin
# loadgroup runs the tests that share a pipeline run in one process. Every process needs memory for
# TensorFlow, so there are at most four.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadgroup
# The changed file of `make mutants`, and the tests that have to find each change.
MUTATED ?= preprocessing/normalise.py
TESTS ?= tests/preprocessing
# Additional arguments of tools/flink_cluster: make flink-cluster CLUSTER_ARGS="--task-managers 3"
CLUSTER_ARGS ?=
MUTANTS := $(CURDIR)/.cache/mutants
DOCS_VENV := .cache/docs/venv
# Create the environment of a tool, in a folder, from a file of pins; instant if it is current.
ENVIRONMENT = $(BIN)/python -m tools.environment $(1) $(2)

UV := .cache/uv/bin/uv
# make lock LOCK_UPGRADE= keeps the pins that still satisfy pyproject.toml.
LOCK_UPGRADE ?= --upgrade
COMPILE := $(UV) pip compile --quiet $(LOCK_UPGRADE) --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links
LOCK := $(COMPILE) pyproject.toml --extra dev --extra bench --extra mlflow
# The universal resolution repeats the limits of [tool.uv] in pyproject.toml on every line.
PLAIN_MARKERS := sed -i -E \
	-e "s/python_full_version < '3.14' and //" \
	-e "s/( and | ; )implementation_name == .* and sys_platform == 'linux'//"
# Print the pins of the second file, with their hashes, that the first file does not have.
NEW_PINS := awk 'NR == FNR { pinned[$$1]; next } /==/ { new = !($$1 in pinned) } new'

SBOM_IMAGE ?=
SBOM = dist/amazon-reviews$(addprefix -image-,$(subst :,-,$(notdir $(SBOM_IMAGE)))).cdx.json
# Print the packages of Python in an image, as pins.
INSTALLED := 'from importlib.metadata import distributions as d; \
	print("\n".join(sorted(each.name + "==" + each.version for each in d())))'
ACCEPTED := requirements/accepted-vulnerabilities.txt
# The time of all files in a build, so that the same commit gives the same bits.
COMMIT_TIME = $${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}

# setuptools writes the present time, the times of the checkout and the user into the archive.
SAME_BITS = cd dist && name=$$(basename *.tar.gz .tar.gz) && tar -xzf $$name.tar.gz && \
	tar -c --sort=name --mtime=@$(1) --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
		--format=gnu $$name | gzip -9 -n >$$name.tar.gz && rm -r $$name

# What Beam's own FlinkRunner downloads: one jar, with Flink inside, of the release of the installed Beam.
DOWNLOAD_JOB_SERVER = 'import sys; from apache_beam.utils.subprocess_server import JavaJarServer as server; \
	jar = server.path_to_beam_jar("runners:flink:1.19:job-server:shadowJar"); \
	server.local_jar(jar, sys.argv[1])'

DOWNLOAD_FLINK = rm -rf .cache/flink.part && mkdir -p .cache/flink.part && \
	if command -v mvn >/dev/null; then mvn --batch-mode --quiet --file $< \
		dependency:copy-dependencies package -DoutputDirectory=$(CURDIR)/.cache/flink.part/lib; \
	else $(BIN)/python -c $(DOWNLOAD_JOB_SERVER) .cache/flink.part/lib >/dev/null || { echo \
		"Beam's job server for Flink: not downloaded; install Maven (Debian: apt-get install maven)" >&2; \
		exit 2; }; fi

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\#.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## list the targets (this is the default)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: ## install the TFX stack that this machine supports into .venv; instant if it is installed
	@command -v $(firstword $(PYTHON)) >/dev/null || { echo "$(PYTHON): not installed; install Python 3," \
		"or name an interpreter: make PYTHON=/path/to/python3" >&2; exit 2; }
	@$(PYTHON) -m tools.install $(if $(filter file,$(origin PYTHON)),,--with-this-python)

run: install ## run the sample pipeline, from raw reviews to a pushed model, and print the result
	@$(BIN)/amazon-reviews run

test: lint ## check style and types, then run the tests (about 25 minutes on two cores)
	@$(PYTEST) $(PYTEST_ARGS)

test-all: lint ## test more settings and failures too, the image, the wheel and the guides (hours)
	@$(PYTEST) --exhaustive $(PYTEST_ARGS)

test-fast: install ## run the tests that start no TFX component, train little and need no real data (2 minutes)
	@$(PYTEST) -m "not slow and not real_data" $(PYTEST_ARGS)

test-cluster: install ## test on the cluster of the current kube context, see CONTRIBUTING.md
	@$(BIN)/python -m pytest -m cluster tests/cluster $(PYTEST_ARGS)

# Cosmic Ray changes the file in place, so it works in a clone of the last commit.
mutants: install ## insert faults into a file, and list those that its tests do not find (hours)
	@$(call ENVIRONMENT,.cache/mutants/venv,requirements/mutants.txt)
	@rm -rf $(MUTANTS)/tree && git clone --quiet --shared . $(MUTANTS)/tree
	@cd $(MUTANTS)/tree && export PATH="$(MUTANTS)/venv/bin:$$PATH" PYTHONPATH="$$PWD" && \
		printf '%s\n' '[cosmic-ray]' 'module-path = "$(MUTATED)"' 'timeout = 300.0' 'excluded-modules = []' \
		'test-command = "$(CURDIR)/$(BIN)/python -m pytest -x -q -n 0 $(TESTS)"' \
		'[cosmic-ray.distributor]' 'name = "local"' >mutants.toml && \
		cosmic-ray init mutants.toml mutants.sqlite && cosmic-ray exec mutants.toml mutants.sqlite && \
		cr-report --show-diff --surviving-only mutants.sqlite

flink: .cache/flink/installed ## download the jars of Flink and of Beam's job server (needs Java)

flink-cluster: flink ## run a Flink cluster with two TaskManagers on this machine until Ctrl-C
	@$(BIN)/python -m tools.flink_cluster $(CLUSTER_ARGS)

# Maven fetches the tested release of the job server; without Maven it is that of the installed Beam.
# An interrupted download leaves no folder with a part of the jars, and the earlier jars as they are.
# The lock is for a second `make flink` at the same time, which waits and then finds the jars.
.cache/flink/installed: kubeflow/flink/pom.xml | install
	@command -v java >/dev/null || { echo "java: not installed; Flink needs Java 11, 17 or 21" \
		"(Debian: apt-get install openjdk-17-jre-headless)" >&2; exit 2; }
	@mkdir -p .cache && exec 9>.cache/flink.lock && flock 9 && if [ ! $@ -nt $< ]; then \
		$(DOWNLOAD_FLINK) && touch .cache/flink.part/installed && rm -rf .cache/flink.old && \
		if [ -e .cache/flink ]; then mv .cache/flink .cache/flink.old; fi && \
		mv .cache/flink.part .cache/flink && rm -rf .cache/flink.old; fi

mlflow-server: install ## install MLflow's server into .cache/mlflow, for the tests
	@$(call ENVIRONMENT,.cache/mlflow,requirements/mlflow-server.txt)

docs: reference docs-venv ## build the documentation into site/, and fail on a dead link
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict --quiet
	@echo "site/index.html"

# Of the interpreter of $(BIN), whose packages it does not need.
.PHONY: docs-venv
docs-venv:
	@$(call ENVIRONMENT,$(DOCS_VENV),requirements/docs.txt)

reference: install ## write the generated parts of docs/reference/ and kubeflow/training.yaml
	@$(BIN)/python -m tools.reference

lint: install ## check style, format, types and the direction of imports
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "not formatted: run make format" >&2; exit 1; }
	@$(BIN)/lint-imports --no-logo >.cache/imports.log || { cat .cache/imports.log >&2; exit 1; }
	@$(BIN)/mypy --no-error-summary

format: install ## format the code, and fix what ruff can fix
	@$(BIN)/ruff check --fix --quiet || true
	@$(BIN)/ruff format --quiet

lock: install ## resolve requirements/*.txt again from pyproject.toml (needs the network)
	@$(LOCK) --python-version 3.10 --python-platform x86_64-manylinux_2_28 \
		--output-file requirements/tfx-1.16-py310.txt
	@$(LOCK) --python-version 3.11 --universal --output-file requirements/tfx-1.21-py311.txt
	@cp requirements/tfx-1.21-py311.txt .cache/gpu.txt
	@$(LOCK:--upgrade=) --extra gpu --python-version 3.11 --universal --output-file .cache/gpu.txt
	@$(PLAIN_MARKERS) requirements/tfx-1.21-py311.txt .cache/gpu.txt
	@$(NEW_PINS) requirements/tfx-1.21-py311.txt .cache/gpu.txt >requirements/gpu-py311.txt
	@echo mkdocs-material | $(COMPILE) --no-config --universal --python-version 3.10 \
		--output-file requirements/docs.txt -
	@echo mlflow | $(COMPILE) --no-config --universal --python-version 3.10 \
		--output-file requirements/mlflow-server.txt -
	@echo uv | $(COMPILE) --no-config --universal --python-version 3.10 \
		--output-file requirements/uv.txt -
	@echo cosmic-ray | $(COMPILE) --no-config --python-version 3.10 \
		--output-file requirements/mutants.txt -

audit: install ## list the pins with a known vulnerability and no written reason (needs the network)
	@failed=; for file in $(filter-out $(ACCEPTED), $(wildcard requirements/*.txt)); do \
		echo "$$file"; \
		$(BIN)/python -m pip_audit --strict --disable-pip --require-hashes --progress-spinner off \
			$$(sed -n 's/^\([^# ][^ ]*\) .*/--ignore-vuln=\1/p' $(ACCEPTED)) --requirement "$$file" || failed=1; \
	done; [ -z "$$failed" ]

package: install ## build the source archive and the wheel into dist/
	@rm -rf build dist/*.whl dist/*.tar.gz
	@SOURCE_DATE_EPOCH=$(COMMIT_TIME) $(BIN)/python -m build --no-isolation >.cache/package.log 2>&1 \
		|| { cat .cache/package.log >&2; exit 1; }
	@$(call SAME_BITS,$(COMMIT_TIME))
	@ls dist/*.whl dist/*.tar.gz

sbom: install ## write the bill of materials of the package (needs the network), or of an image: SBOM_IMAGE=NAME
	@mkdir -p dist
ifdef SBOM_IMAGE
	@docker run --rm --network=none --entrypoint=python $(SBOM_IMAGE) -c $(INSTALLED) >.cache/sbom.txt
else
	@$(UV) pip freeze --quiet --exclude-editable --python $(BIN)/python >.cache/installed.txt
	@$(COMPILE:--upgrade=) --constraint .cache/installed.txt --python $(BIN)/python \
		pyproject.toml >.cache/sbom.txt
endif
	@PYTHONWARNINGS=ignore $(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
		--output-file $(SBOM) .cache/sbom.txt
	@echo $(SBOM)

clean: ## remove what builds and tools leave; keep .venv and runs
	@rm -rf build dist site *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -path './.venv*' -prune -o -path ./.cache -prune -o -name __pycache__ -type d -prune \
		-exec rm -rf {} +

clean-runs: ## remove runs/, which contains the pushed models; print what is removed
	@if [ -e runs ]; then \
		du -sh runs | awk '{ print "removing runs: " $$1 }'; \
		for model in runs/serving/* runs/*/serving/*; do \
			if [ -e "$$model" ]; then echo "removing the pushed model $$model"; fi; \
		done; \
		rm -rf runs; \
	else echo "nothing to remove: there is no runs/ here"; fi

distclean: clean ## remove .venv and .cache too
	@rm -f .venv/installed.json
	@rm -rf .venv .venv.new .venv.old .cache

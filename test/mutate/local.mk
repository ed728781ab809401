# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# One-line mutants of dat/ and dapl/ that no native test kills. It works on a copy of the tree in mutants/ and
# takes half a minute for each mutant; the same command continues after an interruption.
EXTRA_DIST += test/mutate/mutate test/mutate/reached.py
MUTANTS = 200
.PHONY: check-mutants
check-mutants:
	$(srcdir)/test/mutate/mutate --dir mutants --count $(MUTANTS)

# SPDX-License-Identifier: Apache-2.0
#
# The inner loops of products have no more instructions than tests/kernel-cost.csv says (tests/kernel_cost.py).

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	build=$(cd "$XFP_TEST_TOOLS/.." && pwd)
}

# Of the sets in $sets, by default one of x86-64; skips, with the script's reason, if nothing can be compared.
cost() {
	local status=0

	"$PYTHON" "$srcdir/tests/kernel_cost.py" ${sets:---set vbmi --no-cycles} "$@" "$build" >cost || status=$?
	[ "$status" -ne 77 ] || skip "$(grep '^# no .* rows' cost)"
	return "$status"
}

@test "inner loops have at most 2 % more instructions than in the table: x86-64" {
	sets='--no-cycles --set vbmi --set words --set avx512 --set avx2 --set avx2-words' cost || { cat cost; false; }
	grep -q '^143 loops, 0 grown' cost
}

@test "inner loops have at most 2 % more instructions than in the table: AArch64" {
	sets='--no-cycles --set neon --set dotprod' cost || { cat cost; false; }
	grep -q '^51 loops, 0 grown' cost
}

@test "a loop that has grown, or is not in the table, is reported" {
	local status=0

	sed -E '/^vbmi,v2c,4,2/d; s/^(vbmi,v2c,4,1),[0-9.]+/\1,15.0/' "$srcdir/tests/kernel-cost.csv" >table
	cost --table table || status=$?
	[ "$status" -eq 1 ]
	grep -q 'over 2% more instructions than there: vbmi v2c 4 1$' cost
	grep -q 'not in the table.*: vbmi v2c 4 2$' cost
	grep -q ' loops, 2 grown' cost
}

@test "cycles are those of the table" {
	sets='--set panel-avx512' cost --update --table written
	! grep '^# no cycles' cost || skip "$(grep '^# no cycles' cost)"
	grep -E '^(set|panel-avx512),' "$srcdir/tests/kernel-cost.csv" | diff - <(tail -n +2 written)
}

@test "the table is what --update writes, but for cycles" {
	cost --update --table written
	cut -d, -f1-6 written | tail -n +2 >found
	grep -E '^(set|vbmi),' "$srcdir/tests/kernel-cost.csv" | cut -d, -f1-6 | diff - found
}

@test "another compiler or other options: nothing is compared, with the reason" {
	mkdir other
	sed 's/^CFLAGS = .*/CFLAGS = -O3/' "$build/Makefile" >other/Makefile
	run -77 "$PYTHON" "$srcdir/tests/kernel_cost.py" --set vbmi other
	[[ $output == *"# no x86-64 rows: the build is not of gcc 12.2 with CFLAGS='-g -O2'"* ]] || [ "$(uname -m)" != x86_64 ]
}

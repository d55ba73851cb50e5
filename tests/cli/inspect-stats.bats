#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp inspect --stats: statistics of weights, compared with numpy.

load helpers
load packed

setup() {
	setup_folder
}

stats() { # make FOLDER | check MODEL FILE
	"$PYTHON" "$srcdir/tests/inspect_stats.py" "$@"
}

# The statistics of MODEL are those that numpy computes from PLAIN, its unpacked weights.
said_as_of() { # MODEL PLAIN
	xfp inspect --stats --json "$1" >said.json 2>/dev/null
	xfp inspect --stats --csv "$1" 2>/dev/null | stats check "$2" said.json
}

@test "range, sigma, kurtosis and tails equal numpy's, for every dtype, no weights, one, equal ones, and with NaN" {
	stats make model
	run -0 said_as_of model model
	[ "$output" = "44 tensors, 4 roles" ]
}

@test "packed weights are measured unpacked" {
	for form in deepseek qwen3-channel gpt_oss gptq-act awq-gemm ct-nvfp4; do
		packed "$form"
		said_as_of packed plain || { echo "$form"; return 1; }
		rm -r packed plain
	done
}

@test "the same figures for any number of threads, and for experts one by one or on one line" {
	stats make model # which has tensors of every dtype
	make_model m --layers 2
	for model in m model; do
		OMP_NUM_THREADS=1 xfp inspect --stats --csv $model >one 2>/dev/null
		for threads in 2 5; do
			OMP_NUM_THREADS=$threads xfp inspect --stats --csv $model 2>/dev/null | cmp - one
		done
	done
	# a stack's line equals that of its role in a model of one layer
	make_model single
	COLUMNS=200 xfp inspect --stats single >lines
	stack=$(grep 'experts\.\*\.gate_proj.weight$' lines | sed 's/  model.*//')
	[ -n "$stack" ]
	[ "$stack" = "$(grep 'routed_expert gate (3 tensors, 9.22 k weights)$' lines | sed 's/  routed.*//')" ]
	[ "$(COLUMNS=200 xfp inspect --stats -v single | grep -c 'experts\.[0-9]*\.gate_proj.weight$')" -eq 3 ]
}

@test "as text: aligned, excluded weights are reported, and empty columns are omitted" {
	stats make model
	xfp inspect --stats model 'model.layers.0.*' mixed.F16 zero.F32 one.F32 bytes >out 2>/dev/null
	[ "$(awk 'length > 80' out)" = "" ]
	sed -n '/^name/,/^$/p' out >table
	diff - table <<-'END'
		name
		      min     max     sigma  kurtosis  > 3 sigma  > 4 sigma  largest
		bytes: I8
		        -       -         -         -          -          -        -
		mixed.F16: 71 NaN, 59 infinite left out
		   -4.410   4.129    0.9977      2.99    0.262 %    0.010 %     4.42
		model.layers.0.input_layernorm.weight
		   0.9922   1.008  0.002703      6.03    3.125 %    0.000 %     3.24
		model.layers.0.self_attn.q_proj.bias
		  -0.3086  0.2451   0.08354      4.50    1.042 %    0.000 %     3.67
		model.layers.0.self_attn.q_proj.weight
		  -0.4883  0.5430   0.02818     13.67    1.335 %    0.481 %    19.27
		one.F32
		   -2.500  -2.500         -         -    0.000 %    0.000 %        -
		zero.F32
		    0.000   0.000     0.000         -    0.000 %    0.000 %        -

	END
	grep -x 'attention q (1 tensor, 200 k weights)' out
	# sorted by any figure, the largest first, entries without the figure last
	xfp inspect --stats --json model | "$PYTHON" -c 'import json, sys
for t in json.load(sys.stdin)["tensors"]:
    if t["stats"] and t["stats"]["kurtosis"] and "layers" in t["name"]: print(t["stats"]["kurtosis"], t["name"])' 2>/dev/null |
		sort -gr | cut -d' ' -f2 >expected
	[ "$(wc -l <expected)" -eq 9 ]
	COLUMNS=200 xfp inspect --stats --sort kurtosis model 'model.*' one.F32 2>/dev/null |
		grep -oE '(model\.layers|one)\.[A-Za-z0-9._]*$' >order
	diff <(cat expected; echo one.F32) order
	COLUMNS=200 xfp inspect --stats --sort kurtosis --reverse model 'model.*' one.F32 2>/dev/null |
		grep -oE '(model\.layers|one)\.[A-Za-z0-9._]*$' >order
	diff <(tac expected; echo one.F32) order
}

# A model of one tensor of that many bytes, in a sparse file.
hollow() { # FOLDER BYTES
	mkdir "$1"
	"$PYTHON" - "$@" <<-'EOF'
		import json, struct, sys
		folder, size = sys.argv[1], int(sys.argv[2])
		text = json.dumps({"w": {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}}).encode()
		with open(folder + "/model.safetensors", "wb") as file:
		    file.write(struct.pack("<Q", len(text)) + text)
		    file.truncate(8 + len(text) + size)
	EOF
}

@test "memory does not depend on the size of tensors" {
	[ "${XFP_TEST_SANITIZERS:-no}" = no ] || skip "the sanitizers have memory of their own"
	hollow small $((1 << 20))
	hollow large $((600 << 20))
	for model in small large; do
		OMP_NUM_THREADS=2 "$PYTHON" "$srcdir/tests/measure-peak" -i 5 -o "$model.json" \
			xfp inspect --stats $model >/dev/null 2>&1
	done
	"$PYTHON" -c 'import json
small, large = (json.load(open(name + ".json"))["pss"] for name in ("small", "large"))
print(small, large)
assert large < 64 << 20, large'
}

@test "a signal ends it at once, and on a terminal the progress line is erased" {
	hollow endless $((1 << 42))
	"$PYTHON" - <<-'EOF'
		import os, pty, select, signal, time
		for ending in signal.SIGINT, signal.SIGTERM:
		    pid, terminal = pty.fork()
		    if not pid:
		        signal.signal(signal.SIGINT, signal.SIG_DFL)
		        os.execvp("xfp", ["xfp", "inspect", "--stats", "endless"])
		    shown, started, sent = b"", time.monotonic(), 0
		    while time.monotonic() < started + 60:
		        try:
		            if select.select([terminal], [], [], .2)[0]:
		                shown += os.read(terminal, 65536)
		        except OSError:
		            break
		        if not sent and shown.count(b"measuring") > 2:
		            sent = time.monotonic()
		            os.kill(pid, ending)
		    else:
		        os.kill(pid, signal.SIGKILL)
		    status = os.waitpid(pid, 0)[1]
		    assert sent and time.monotonic() - sent < 20, shown
		    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == ending, status
		    assert b"measuring   0 %, 0 of 1 tensors" in shown, shown
		    assert shown.endswith(b"\r\x1b[K"), shown[-80:]
	EOF
}

@test "a read error: the file, status 1, and no figures" {
	command -v strace >/dev/null || skip "there is no strace"
	make_model m
	OMP_NUM_THREADS=1 run -1 --separate-stderr strace -f -qq -o trace -e inject=pread64:error=EIO:when=20+ xfp inspect --stats m
	[ -z "$output" ]
	[[ $stderr == *"xfp inspect: "*"model.safetensors: "*"Input/output error"* ]] || { echo "$stderr"; return 1; }
	[ ! -e /dev/full ] || { run -1 bash -c 'xfp inspect --stats m >/dev/full'; [[ $output == *"standard output"* ]]; }
}

package script

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// benchProgram is a handler as people write them: 3 awaited calls, some work
// on the answers, state in and out.
func benchProgram(b *testing.B) *Program {
	b.Helper()
	return compileTest(b, `
class Total { #sum = 0n; add(n: number) { this.#sum += BigInt(n); return this } get text() { return this.#sum.toString() } }
export default { producers: { p: { async handler(ctx: any, state: any) {
  const total = new Total();
  const seen = new Map<string, number>();
  for (let i = 0; i < 3; i++) {
    const answer = await ctx.tools.shop.get({ path: "/orders/" + i, query: { page: i } });
    const { id } = /orders.(?<id>\d+)/.exec(answer.args.path)!.groups!;
    seen.set(id, (seen.get(id) ?? 0) + 1);
    total.add(Number(id));
  }
  return { ...state, total: total.text, seen: [...seen] };
} } } }`)
}

// BenchmarkPhase is one phase after another: a fresh environment each.
func BenchmarkPhase(b *testing.B) {
	p := newTestPool(b, Config{Workers: 1})
	for name, test := range map[string]struct {
		program *Program
		host    Host
	}{
		"empty":   {compileTest(b, handler("return 1")), nil},
		"3 calls": {benchProgram(b), &silentHost{}},
	} {
		b.Run(name, func(b *testing.B) {
			req := Request{Program: test.program, Handler: handlerPath, Args: []rawJSON{rawJSON(`{"n":1}`)}}
			var cpu time.Duration
			for b.Loop() {
				result, err := p.Run(b.Context(), req, test.host, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				cpu += result.CPU
			}
			b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "script-us/op")
		})
	}
}

// BenchmarkPhases is phases beside each other.
func BenchmarkPhases(b *testing.B) {
	for _, workers := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(workers, " workers"), func(b *testing.B) {
			p := newTestPool(b, Config{Workers: workers})
			req := Request{Program: benchProgram(b), Handler: handlerPath, Args: []rawJSON{rawJSON(`{"n":1}`)}}
			b.SetParallelism(workers)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := p.Run(b.Context(), req, &silentHost{}, Limits{}); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "phases/s")
		})
	}
}

// BenchmarkFirstPhase starts a process for each phase.
func BenchmarkFirstPhase(b *testing.B) {
	p := newTestPool(b, Config{Workers: 1, RunsPerWorker: 1})
	req := Request{Program: compileTest(b, handler("return 1")), Handler: handlerPath}
	for b.Loop() {
		if _, err := p.Run(b.Context(), req, nil, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	source, err := os.ReadFile("testdata/mail-to-sheet.workflow.ts")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("here", func(b *testing.B) {
		for b.Loop() {
			if _, err := Compile("x.ts", string(source)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("in a worker", func(b *testing.B) {
		p := newTestPool(b, Config{Workers: 1})
		for b.Loop() {
			if _, err := p.Compile(b.Context(), "x.ts", string(source)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkEngine is what the engine itself costs, in this process.
func BenchmarkEngine(b *testing.B) {
	var q *quick
	q, err := newQuick(DefaultLimits().Heap, func(string, string) string { return "" })
	if err != nil {
		b.Fatal(err)
	}
	compiled, err := q.compile(shifted(benchProgram(b).JavaScript()))
	if err != nil {
		b.Fatal(err)
	}
	q.open(nil)
	if err := q.load(compiled); err != nil {
		b.Fatal(err)
	}
	loaded := q.save()
	b.Run("open", func(b *testing.B) {
		b.ReportMetric(float64(loaded.size())/1024, "KiB")
		for b.Loop() {
			q.open(loaded)
		}
	})
	b.Run("open and begin", func(b *testing.B) {
		for b.Loop() {
			q.open(loaded)
			q.limit(128<<20, 2000)
			if err := q.dispatch("set", "", settings(runHeader{})); err != nil {
				b.Fatal(err)
			}
			if err := q.dispatch("begin", "", `{"handler":"producers.p.handler","args":[{"n":1}]}`); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			q.open(nil)
			if err := q.load(compiled); err != nil {
				b.Fatal(err)
			}
		}
	})
}

package measure

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

// Report gathers what was measured, as a table for each database.
type Report struct {
	text strings.Builder
	name string
}

// Begin opens the table of a database.
func (r *Report) Begin(name string) {
	r.name = name
	fmt.Fprintf(&r.text, "\n## %s\n\n| | |\n|---|--:|\n", name)
}

// Say tells whoever waits what is measured now.
func (r *Report) Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, r.name+": "+format+"\n", args...)
}

// Line adds a value.
func (r *Report) Line(what, value string, args ...any) {
	fmt.Fprintf(&r.text, "| %s | %s |\n", what, fmt.Sprintf(value, args...))
}

// Note adds a paragraph after the tables.
func (r *Report) Note(text string) { r.text.WriteString("\n" + text + "\n") }

// Main runs a benchmark with the flags that all have: on each database that
// there is, and then note once. It ends the process with 1 after an error.
func Main(title, target string, measure func(ctx context.Context, r *Report, p Place, quick bool) error, note string) {
	quick := flag.Bool("quick", false, "small sizes, to see that everything works")
	pg := flag.String("pg", os.Getenv("PAWL_TEST_POSTGRES"), "`URL` of a PostgreSQL server with the right to create databases")
	only := flag.String("only", "", "measure only `SQLite` or PostgreSQL")
	dir := flag.String("dir", "", "keep files below this `directory`, which should be on a real disk")
	out := flag.String("out", "", "also write the report to this `file`")
	profile := flag.String("cpuprofile", "", "write a profile of the processor time to this `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	report := &Report{}
	fmt.Fprintf(&report.text, "# %s\n\nWritten by `make %s` on %s: %d cores, %s/%s, %s. Full durability.\n",
		title, target, time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if *quick {
		report.Note("A short run: the sizes are too small for the numbers to mean much.")
	}
	places := []Place{{Name: "SQLite", Dir: *dir}, {Name: "PostgreSQL", Postgres: *pg, Dir: *dir}}
	err := profiled(*profile, func() error {
		for _, p := range places {
			if p.Name == "PostgreSQL" && p.Postgres == "" || *only != "" && *only != p.Name {
				continue
			}
			report.Begin(p.Name)
			if err := measure(ctx, report, p, *quick); err != nil {
				return err
			}
		}
		return nil
	})
	report.Note(note)
	fmt.Print(report.text.String())
	if err == nil && *out != "" {
		err = os.WriteFile(*out, []byte(report.text.String()), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func profiled(file string, do func() error) error {
	if file == "" {
		return do()
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only a profile
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return do()
}

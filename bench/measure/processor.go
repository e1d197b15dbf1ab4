package measure

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postmaster is the process of a PostgreSQL server, zero if it is not of this
// machine.
func Postmaster(ctx context.Context, pg string) int {
	if pg == "" {
		return 0
	}
	c, err := pgx.Connect(ctx, pg)
	if err != nil {
		return 0
	}
	defer c.Close(ctx) //nolint:errcheck // nothing was written
	var backend int
	if err := c.QueryRow(ctx, `select pg_backend_pid()`).Scan(&backend); err != nil {
		return 0
	}
	parent, _, _ := ReadStat(strconv.Itoa(backend))
	return parent
}

// ProcessorTimeOf is what a PostgreSQL server has used until now.
func ProcessorTimeOf(postmaster int) (sum time.Duration) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		parent, used, _ := ReadStat(e.Name())
		if postmaster > 0 && (parent == postmaster || e.Name() == strconv.Itoa(postmaster)) {
			sum += used
		}
	}
	return sum
}

// ReadStat reads the parent of a process, its processor time, and that of its
// children that have ended; zero where there is no such process.
func ReadStat(pid string) (parent int, used, ended time.Duration) {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, 0, 0
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the name before it may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	const tick = 10 * time.Millisecond // of Linux, on every machine that it runs on
	sum := func(user, system string) time.Duration {
		u, _ := strconv.Atoi(user)
		s, _ := strconv.Atoi(system)
		return time.Duration(u+s) * tick
	}
	return parent, sum(fields[11], fields[12]), sum(fields[13], fields[14])
}

package store

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// Every connection, that of a link too, is given up by the kernel when
// nobody acknowledges what is sent, and asked whether it lives when it is silent.
func TestKernelWatchesConnections(t *testing.T) {
	db := open(t, pgtest.URL(t))
	s, err := db.OpenLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := db.hot.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	for name, conn := range map[string]net.Conn{"link": s.c.PgConn().Conn(), "hot": c.Conn().PgConn().Conn()} {
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		for option, want := range map[int]int{unix.TCP_USER_TIMEOUT: 10_000, unix.TCP_KEEPIDLE: 5, unix.TCP_KEEPINTVL: 2, unix.TCP_KEEPCNT: 3} {
			if err := raw.Control(func(fd uintptr) {
				if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); err != nil || got != want {
					t.Errorf("%s: option %d is %d, %v; want %d", name, option, got, err, want)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

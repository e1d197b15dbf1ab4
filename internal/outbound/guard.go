package outbound

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
)

// guard decides which addresses may be dialled.
type guard struct {
	allow   []netip.Prefix
	special []specialRange
}

// specialRange is a range that is not part of the public internet.
type specialRange struct {
	prefix netip.Prefix
	what   string // completes "127.0.0.1 is ..."
}

// refusal is the error of a dial that the guard stopped.
type refusal struct {
	addr netip.Addr
	what string
}

func (r *refusal) Error() string { return fmt.Sprintf("%s is %s", r.addr, r.what) }

func newGuard(allow []netip.Prefix) *guard {
	return &guard{allow: allow, special: specialRanges()}
}

// control is the net.Dialer hook: it runs after resolution, before each
// connection attempt, and its error stops that attempt.
func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusal{what: "not an address that can be checked"}
	}
	return g.check(ap.Addr())
}

// check refuses an address that is not public, or that carries an IPv4 address
// which is not, unless the address itself is in an allowed range. Allowing an
// IPv4 range does not allow the IPv6 addresses that carry it, because those
// lead through a gateway to another machine; only ::ffff:a.b.c.d is the same
// address in another spelling.
func (g *guard) check(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("")
	for _, p := range g.allow {
		if p.Contains(addr) {
			return nil
		}
	}
	if what := g.describe(addr); what != "" {
		return &refusal{addr: addr, what: what}
	}
	for _, inner := range carriedIPv4(addr) {
		if what := g.describe(inner); what != "" {
			return &refusal{addr: addr, what: fmt.Sprintf("a route to %s, %s", inner, what)}
		}
	}
	return nil
}

// describe says what is special about addr; it is empty for a public address.
func (g *guard) describe(addr netip.Addr) string {
	for _, s := range g.special {
		if s.prefix.Contains(addr) {
			return s.what
		}
	}
	if addr.Is6() && !globalIPv6().Contains(addr) && !nat64().Contains(addr) {
		return "not a public address"
	}
	return ""
}

// carriedIPv4 returns the IPv4 addresses inside an address of a transition
// mechanism. IPv4-compatible and IPv4-translated addresses need no rule: they
// are outside global IPv6 space and refused whatever they carry.
func carriedIPv4(addr netip.Addr) []netip.Addr {
	if !addr.Is6() {
		return nil
	}
	b := addr.As16()
	switch {
	case nat64().Contains(addr):
		return []netip.Addr{ipv4(b[12:16])}
	case sixToFour().Contains(addr):
		return []netip.Addr{ipv4(b[2:6])}
	case teredo().Contains(addr):
		client := []byte{^b[12], ^b[13], ^b[14], ^b[15]} // stored inverted
		return []netip.Addr{ipv4(b[4:8]), ipv4(client)}
	}
	return nil
}

func ipv4(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b)) }

func globalIPv6() netip.Prefix { return prefix6(0x20, 0, 0, 0, 3) }
func nat64() netip.Prefix      { return prefix6(0x00, 0x64, 0xff, 0x9b, 96) }
func sixToFour() netip.Prefix  { return prefix6(0x20, 0x02, 0, 0, 16) }
func teredo() netip.Prefix     { return prefix6(0x20, 0x01, 0, 0, 32) }

// prefix6 makes a prefix from the first four bytes of an IPv6 address.
func prefix6(a, b, c, d byte, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{a, b, c, d}), bits)
}

// specialRanges is the list of the IANA special-purpose registries, less what
// describe refuses anyway. More telling descriptions come first.
func specialRanges() []specialRange {
	list := []struct{ cidr, what string }{
		{"127.0.0.0/8", "a loopback address"},
		{"10.0.0.0/8", "a private address"},
		{"172.16.0.0/12", "a private address"},
		{"192.168.0.0/16", "a private address"},
		{"169.254.0.0/16", "a link-local address"},
		{"100.64.0.0/10", "a carrier-grade NAT address"},
		{"0.0.0.0/32", "the unspecified address"},
		{"0.0.0.0/8", "a reserved address"},
		{"192.0.0.0/24", "a reserved address"},
		{"192.0.2.0/24", "a documentation address"},
		{"198.51.100.0/24", "a documentation address"},
		{"203.0.113.0/24", "a documentation address"},
		{"198.18.0.0/15", "a benchmark address"},
		{"192.88.99.0/24", "a reserved address"},
		{"224.0.0.0/4", "a multicast address"},
		{"255.255.255.255/32", "the broadcast address"},
		{"240.0.0.0/4", "a reserved address"},

		{"::1/128", "a loopback address"},
		{"::/128", "the unspecified address"},
		{"fc00::/7", "a private address"},
		{"fe80::/10", "a link-local address"},
		{"fec0::/10", "a private address"},
		{"ff00::/8", "a multicast address"},
		{"2001:2::/48", "a benchmark address"},
		{"2001:10::/28", "a reserved address"},
		{"2001:20::/28", "a reserved address"},
		{"2001:db8::/32", "a documentation address"},
		{"3fff::/20", "a documentation address"},
	}
	out := make([]specialRange, len(list))
	for i, r := range list {
		out[i] = specialRange{netip.MustParsePrefix(r.cidr), r.what}
	}
	return out
}

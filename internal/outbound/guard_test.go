package outbound

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestGuardRefusesWhatIsNotPublic(t *testing.T) {
	g := newGuard(nil)
	for _, addr := range []string{
		"127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1",
		"169.254.169.254", "100.64.0.1", "100.127.255.255", "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.1.1.1",
		"255.255.255.255", "240.0.0.1", "192.0.0.170", "192.0.2.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.7", "203.0.113.7", "192.88.99.1",
		"::", "::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2001:db8::1",
		"3fff::1", "2001:2::1", "2001:10::1", "2001:20::1", "100::1", "5f00::1", "4000::1",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::ffff:0:127.0.0.1", "::8.8.8.8",
		"64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::8.8.8.8",
		"2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:c0a8:101::1",
		"2001:0:7f00:1::f7f7:f7f7",    // Teredo server 127.0.0.1, client 8.8.8.8
		"2001:0:808:808::80ff:fffe",   // Teredo server 8.8.8.8, client 127.0.0.1
		"2001:0:808:808:0:0:5601:156", // Teredo server 8.8.8.8, client 169.254.254.169
	} {
		if err := g.check(netip.MustParseAddr(addr)); err == nil {
			t.Errorf("%s may be dialled", addr)
		}
	}
}

func TestGuardAllowsPublicAddresses(t *testing.T) {
	g := newGuard(nil)
	for _, addr := range []string{
		"8.8.8.8", "1.1.1.1", "11.0.0.1", "172.15.0.1", "172.32.0.1", "192.167.1.1", "100.63.0.1", "100.128.0.1",
		"126.255.255.255", "128.0.0.1", "223.255.255.255", "192.0.1.1", "198.17.0.1", "198.20.0.1",
		"2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888", "::ffff:8.8.8.8",
		"64:ff9b::8.8.8.8", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7",
	} {
		if err := g.check(netip.MustParseAddr(addr)); err != nil {
			t.Errorf("%s is refused: %v", addr, err)
		}
	}
}

func TestGuardAllowsExactlyTheGivenRanges(t *testing.T) {
	allow, err := ParsePrefixes([]string{"127.0.0.1", "10.1.0.0/16", "fd00::/8"})
	if err != nil {
		t.Fatal(err)
	}
	g := newGuard(allow)
	for addr, want := range map[string]bool{
		"127.0.0.1": true, "::ffff:127.0.0.1": true, "127.0.0.2": false,
		"10.1.255.1": true, "10.2.0.1": false, "fd00::1": true, "fc00::1": false, "::1": false,
		"64:ff9b::127.0.0.1": false, "2002:7f00:1::": false, // a gateway, not this machine
	} {
		if err := g.check(netip.MustParseAddr(addr)); (err == nil) != want {
			t.Errorf("%s: got %v, want allowed %v", addr, err, want)
		}
	}
}

func TestGuardRefusesWhatItCannotRead(t *testing.T) {
	g := newGuard(nil)
	for _, address := range []string{"", "127.0.0.1", "/run/some.sock", "name:80"} {
		if err := g.control(t.Context(), "tcp", address, nil); err == nil {
			t.Errorf("dial of %q is not stopped", address)
		}
	}
}

// However an IPv4 address is wrapped, it is refused when it is refused bare.
func TestGuardSeesThroughEveryWrapping(t *testing.T) {
	g := newGuard(nil)
	special := slices.DeleteFunc(specialRanges(), func(r specialRange) bool { return r.prefix.Addr().Is6() })
	rapid.Check(t, func(t *rapid.T) {
		v4 := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4")))
		if rapid.Bool().Draw(t, "special") {
			v4 = rapid.SampledFrom(special).Draw(t, "range").prefix.Addr()
		}
		b := v4.As4()
		refused := g.check(v4) != nil
		for name, a := range map[string]netip.Addr{
			"mapped": netip.AddrFrom16(v4.As16()),
			"nat64":  netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: b[0], b[1], b[2], b[3]}),
			"6to4":   netip.AddrFrom16([16]byte{0x20, 0x02, b[0], b[1], b[2], b[3], 15: 1}),
			"teredo": netip.AddrFrom16([16]byte{0x20, 0x01, 0, 0, 8, 8, 8, 8, 12: ^b[0], ^b[1], ^b[2], ^b[3]}),
		} {
			if got := g.check(a) != nil; got != refused {
				t.Fatalf("%s of %s (%s): refused %v, bare %v", name, v4, a, got, refused)
			}
		}
	})
}

func TestRefusalSaysWhatAndHow(t *testing.T) {
	g := newGuard(nil)
	for addr, want := range map[string][2]string{
		"127.0.0.1":          {"127.0.0.1 is a loopback address", "--allow-private 127.0.0.1/32"},
		"169.254.169.254":    {"169.254.169.254 is a link-local address", "--allow-private 169.254.169.254/32"},
		"fd00::1":            {"fd00::1 is a private address", "--allow-private fd00::1/128"},
		"64:ff9b::10.0.0.1":  {"64:ff9b::a00:1 is a route to 10.0.0.1, a private address", "--allow-private 64:ff9b::a00:1/128"},
		"255.255.255.255":    {"255.255.255.255 is the broadcast address", "--allow-private 255.255.255.255/32"},
		"fe80::1%eth0":       {"fe80::1 is a link-local address", "--allow-private fe80::1/128"},
		"::ffff:192.168.1.1": {"192.168.1.1 is a private address", "--allow-private 192.168.1.1/32"},
	} {
		r, ok := errors.AsType[*refusal](g.check(netip.MustParseAddr(addr)))
		if !ok {
			t.Fatalf("%s is not refused", addr)
		}
		if r.Error() != want[0] || !strings.HasSuffix(r.hint(), want[1]) {
			t.Errorf("%s: got %q, hint %q", addr, r, r.hint())
		}
	}
}

// Which address of the operator's network a name has is not for everybody to
// know; what somebody wrote themselves is told.
func TestRefusalTellsNoAddressOfAName(t *testing.T) {
	r := &refusal{addr: netip.MustParseAddr("10.1.2.3"), what: "a private address"}
	for host, told := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "localhost": true, "a.localhost": true, "db.internal": false, "10.1.2.3.nip.io": false, "localhost.example.com": false} {
		reason, hint := r.describe(host)
		if strings.Contains(reason+hint, "10.1.2.3") != told || strings.Contains(reason, "private") != told || !strings.Contains(hint, "--allow-private") {
			t.Errorf("%s: %q, %q", host, reason, hint)
		}
	}
}

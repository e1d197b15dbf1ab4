package outbound

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
)

func TestParsePrefixesReadsRangesAndAddresses(t *testing.T) {
	got, err := ParsePrefixes([]string{
		"10.0.0.0/8", "127.0.0.1", " fd00::/8 ", "::1", "", "192.168.1.7/16, 172.16.0.0/12,,",
		"::ffff:127.0.0.1", "::ffff:10.0.0.0/104",
	})
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, p := range got {
		text = append(text, p.String())
	}
	want := []string{
		"10.0.0.0/8", "127.0.0.1/32", "fd00::/8", "::1/128", "192.168.0.0/16", "172.16.0.0/12",
		"127.0.0.1/32", "10.0.0.0/8",
	}
	if !slices.Equal(text, want) {
		t.Errorf("got %v, want %v", text, want)
	}
}

func TestParsePrefixesNamesTheBadValue(t *testing.T) {
	for _, bad := range []string{
		"localhost", "10.0.0/8", "10.0.0.0/33", "10.0.0.0/", "/8", "127.1", "0x7f.1", "010.0.0.1",
		"fe80::1%eth0", "fe80::%eth0/64", "10.0.0.0/8/8", "http://10.0.0.1", "*",
	} {
		_, err := ParsePrefixes([]string{"10.0.0.0/8", bad})
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok {
			t.Errorf("%q: got %v, want an error", bad, err)
			continue
		}
		if e.Code != pawl.CodeInvalid || e.Hint == "" || !strings.Contains(e.Msg, `"`+bad+`"`) {
			t.Errorf("%q: code %s, message %q, hint %q", bad, e.Code, e.Msg, e.Hint)
		}
	}
}

func FuzzParsePrefixes(f *testing.F) {
	for _, s := range []string{
		"10.0.0.0/8", "::/0", "0.0.0.0/0", "::ffff:1.2.3.4/95", "::ffff:1.2.3.4/96", "::ffff:0:0/128", ",,", "%", "1/1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParsePrefixes([]string{s})
		if err != nil {
			return
		}
		for _, p := range got {
			if !p.IsValid() || p != p.Masked() || p.Addr().Zone() != "" {
				t.Fatalf("%q gives %v", s, p)
			}
			again, err := ParsePrefixes([]string{p.String()})
			if err != nil || !slices.Equal(again, []netip.Prefix{p}) {
				t.Fatalf("%q gives %v, which is read back as %v (%v)", s, p, again, err)
			}
		}
	})
}

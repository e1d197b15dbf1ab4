package outbound

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/pawlrun/pawl"
)

// ParsePrefixes reads the ranges of --allow-private: CIDR ranges or single
// addresses, also several in one value with commas between them, as the
// environment variable has them. Empty parts are skipped. IPv4 written as IPv6
// (::ffff:10.0.0.0/104) becomes IPv4, and bits after the prefix are cleared.
func ParsePrefixes(values []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			part = strings.TrimSpace(part)
			if part == "" {
				continue
			}
			p, err := parsePrefix(part)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, &pawl.Error{
			Code: pawl.CodeInvalid,
			Op:   "read the allowed private addresses",
			Msg:  fmt.Sprintf("%q is neither an address nor a CIDR range", s),
			Hint: "write a range as 10.0.0.0/8 or fd00::/8, and one address as 127.0.0.1",
		}
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

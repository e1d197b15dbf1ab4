package outbound

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// firstHop checks req and copies it, with the headers that the client owns in
// order. When it refuses, the body of req is closed.
func (c *Client) firstHop(ctx context.Context, req *http.Request) (*http.Request, error) {
	if err := checkRequest(req); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, newError(req, Error{Kind: KindInvalid, Reason: err.Error(), Err: err})
	}
	hop := req.Clone(ctx)
	hop.RequestURI = ""
	if hop.Header == nil {
		hop.Header = http.Header{}
	}
	cleanHeaders(hop.Header)
	if _, set := hop.Header["User-Agent"]; !set {
		hop.Header.Set("User-Agent", c.cfg.UserAgent)
	}
	return hop, nil
}

// cleanHeaders removes what is for the connection to decide and not for the
// caller. Accept-Encoding goes too, unless it asks for no compression, so that
// the transport decompresses and limits count what a reader really gets.
func cleanHeaders(h http.Header) {
	maps.DeleteFunc(h, func(name string, values []string) bool {
		switch http.CanonicalHeaderKey(name) {
		case "Connection", "Expect", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Te", "Upgrade":
			return true
		case "Accept-Encoding":
			return len(values) != 1 || !strings.EqualFold(values[0], "identity")
		}
		return false
	})
}

func checkRequest(req *http.Request) error {
	switch req.Method {
	case http.MethodConnect, http.MethodTrace:
		return errors.New("the method is not allowed")
	}
	if err := checkHeaders(req.Header); err != nil {
		return err
	}
	return checkURL(req.URL)
}

// checkHeaders finds control characters before the transport does, to name the
// header: a secret read from a file often ends in a line break.
func checkHeaders(h http.Header) error {
	for name, values := range h {
		for _, value := range values {
			if !IsHeaderValue(value) {
				return fmt.Errorf("the value of the header %s holds a line break or another control character", excerpt(name))
			}
		}
	}
	return nil
}

// checkURL refuses what could not be called safely. Its messages never quote
// the URL. Whether the host may be called is decided when it is dialled.
func checkURL(u *url.URL) error {
	switch {
	case u == nil:
		return errors.New("the URL is missing")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the URL does not begin with http:// or https://")
	case u.User != nil:
		return errors.New("the URL holds a user name or password; put credentials into a header")
	case u.Opaque != "" || u.Hostname() == "":
		return errors.New("the URL names no host")
	case isOddAddress(u.Hostname()):
		return errors.New("the host is a number that is not an IP address in its usual form, such as 192.0.2.1")
	case !isPort(u.Port()):
		return errors.New("the port is not a number from 1 to 65535")
	}
	return nil
}

// isOddAddress reports whether a host ends in a number without being an IP
// address as Go writes it: 2130706433, 0x7f.1, 127.1 and 0177.0.0.1 are read
// as 127.0.0.1 by some resolvers and as names by others. No top-level domain
// is a number, so no real name is lost.
func isOddAddress(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	hex := len(last) > 1 && (strings.HasPrefix(last, "0x") || strings.HasPrefix(last, "0X"))
	if hex {
		return strings.Trim(last[2:], "0123456789abcdefABCDEF") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// isPort accepts the absence of a port, which means that of the scheme.
func isPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

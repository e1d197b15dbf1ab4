package server

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

// guardHost refuses requests that came under a name which is not one of this
// machine's own, where the server listens on this machine alone: a page of
// another site can make a browser take such a name for this address (DNS
// rebinding), and would then be of the same origin. Behind a proxy the names are
// the proxy's business, or are given by --allow-host.
func (s *server) guardHost(next http.Handler) http.Handler {
	if at, ok := s.listen.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return next
	}
	names := []string{}
	for _, name := range s.cfg.AllowHosts {
		names = append(names, bareHost(name))
	}
	if public, err := url.Parse(s.cfg.PublicURL); err == nil && public.Host != "" {
		names = append(names, bareHost(public.Host))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := bareHost(r.Host)
		if host == "" || isOwnHost(host) || slices.Contains(names, host) { // a browser always sends one
			next.ServeHTTP(w, r)
			return
		}
		refuseHost(w, r)
	})
}

// bareHost is a host without its port, in small letters.
func bareHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// isOwnHost reports whether a name can only mean the machine that asks.
func isOwnHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func refuseHost(w http.ResponseWriter, r *http.Request) {
	const detail = "This server is not known by the name in the address."
	const hint = "Use 127.0.0.1 or localhost. Whoever runs the server can allow a name with --allow-host NAME."
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Error(w, detail+" "+hint, http.StatusMisdirectedRequest)
		return
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusMisdirectedRequest)
	_ = json.NewEncoder(w).Encode(client.Problem{ // whoever asked may be gone
		Type: "urn:pawl:problem:host_not_allowed", Title: "Not this server's name", Status: http.StatusMisdirectedRequest, Code: "host_not_allowed",
		Detail: detail, Hint: hint, RequestID: store.NewID(),
	})
}

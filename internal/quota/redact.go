package quota

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	shortestSecret = 6 // characters; shorter ones are found in texts that have nothing to do with them
	tokensKept     = 2 // of a domain: the one in use, and the one that calls under way still have
)

// redactor puts the names of domains in place of their secrets. The zero value
// knows none.
type redactor struct {
	mu       sync.RWMutex
	fixed    []hidden            // guarded by mu, as are the rest
	tokens   map[string][]hidden // by domain
	replacer *strings.Replacer   // of all of these; nil if there are none
}

// hidden is one value, behind a function so that it cannot be printed.
type hidden struct {
	domain string
	value  secret
}

// add knows another secret for good.
func (r *redactor) add(domain string, value secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fixed = append(r.fixed, hidden{domain, value})
	r.rebuild()
}

// note knows a token, in place of older ones of the domain.
func (r *redactor) note(domain string, token secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tokens == nil {
		r.tokens = map[string][]hidden{}
	}
	list := append(r.tokens[domain], hidden{domain, token})
	r.tokens[domain] = list[max(0, len(list)-tokensKept):]
	r.rebuild()
}

// rebuild makes the replacer. At one place the longest value wins, so that no
// secret that begins like another leaves its end behind. The caller has mu.
func (r *redactor) rebuild() {
	type form struct{ text, name string }
	var forms []form
	list := r.fixed
	for _, tokens := range r.tokens {
		list = slices.Concat(list, tokens)
	}
	for _, h := range list {
		value := h.value()
		if utf8.RuneCountInString(value) < shortestSecret {
			continue
		}
		for _, text := range spellings(value) {
			forms = append(forms, form{text, "[secret of " + h.domain + "]"})
		}
	}
	slices.SortStableFunc(forms, func(a, b form) int { return cmp.Compare(len(b.text), len(a.text)) })
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f.text, f.name)
	}
	r.replacer = strings.NewReplacer(pairs...)
}

func (r *redactor) text(text string) string {
	r.mu.RLock()
	replacer := r.replacer
	r.mu.RUnlock()
	if replacer == nil {
		return text
	}
	return replacer.Replace(text)
}

// spellings are the ways in which a value may turn up: as it is, in JSON, in a
// URL, and in base64, alone or within something longer such as user:password.
func spellings(value string) []string {
	quoted, _ := json.Marshal(value) // a string always can be
	inQuery := url.QueryEscape(value)
	list := []string{value, string(quoted[1 : len(quoted)-1]), inQuery, strings.ReplaceAll(inQuery, "+", "%20"), url.PathEscape(value)}
	for before := range 3 {
		// Every third byte starts a new group of four characters. Those at
		// either end that depend on the neighbours are left out.
		padded := strings.Repeat("\x00", before) + value
		from, to := (8*before+5)/6, 8*len(padded)/6
		list = append(list, base64.RawStdEncoding.EncodeToString([]byte(padded))[from:to], base64.RawURLEncoding.EncodeToString([]byte(padded))[from:to])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

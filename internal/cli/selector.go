package cli

import "strings"

// selector is a choice by labels: all of them must be there with these values.
type selector map[string]string

// parseSelector reads name=value, several parted by commas or in several
// texts.
func parseSelector(texts []string) (selector, error) {
	s := selector{}
	for _, text := range texts {
		for part := range strings.SplitSeq(text, ",") {
			name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
			if name = strings.TrimSpace(name); !ok || name == "" {
				return nil, usageError("Write -l team=data.", "-l: %q is not a label and value", part)
			}
			s[name] = strings.TrimPrefix(strings.TrimSpace(value), "=") // == is as good
		}
	}
	return s, nil
}

// matches reports whether labels are those that were asked for. An empty
// selector takes everything.
func (s selector) matches(labels map[string]string) bool {
	for name, value := range s {
		if have, ok := labels[name]; !ok || have != value {
			return false
		}
	}
	return true
}

// String writes the selector as it may be given.
func (s selector) String() string { return labelWords(s) }

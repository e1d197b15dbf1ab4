package file

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Limits of paths. Names are limited as on common disks.
const (
	longestPath = 1024 // bytes
	longestName = 255  // bytes
	deepest     = 32   // names
)

// cleanPath checks the path of a file that a script named and returns it in
// its shortest form.
func cleanPath(given *string) (string, error) {
	if given == nil || *given == "" {
		return "", connector.BadArguments("", "path is missing")
	}
	if strings.HasSuffix(*given, "/") {
		return "", badPath(*given, "a path that ends in / names a folder")
	}
	clean, err := cleanFolder(given)
	if err == nil && clean == "." {
		return "", badPath(*given, "it names the folder of the connection itself")
	}
	return clean, err
}

// cleanFolder checks the path of a folder; a missing one is the folder of the
// connection, which is called ".".
func cleanFolder(given *string) (string, error) {
	if given == nil || *given == "" {
		return ".", nil
	}
	switch whole := *given; {
	case len(whole) > longestPath:
		return "", badPath(whole, "it is longer than 1024 bytes")
	case strings.HasPrefix(whole, "/"):
		return "", badPath(whole, "it must be relative to the folder of the connection")
	case strings.Contains(whole, `\`):
		return "", badPath(whole, `names are separated by /, not by \`)
	}
	clean := path.Clean(*given)
	names := strings.Split(*given, "/") // not of the cleaned path, from which .. vanishes
	for _, name := range names {
		if fault := nameFault(name); fault != "" {
			return "", badPath(*given, fault)
		}
	}
	if len(names) > deepest {
		return "", badPath(*given, "it has more than 32 names")
	}
	return clean, nil
}

func badPath(given, fault string) error {
	return logicFault("bad_path", "A path looks like reports/today.txt.", "the path %s cannot be used: %s", pawl.Quote(given), fault)
}

// nameFault is why scripts cannot use a name, or empty.
func nameFault(name string) string {
	switch {
	case name == "..":
		return ".. is not allowed"
	case len(name) > longestName:
		return "a name has more than 255 bytes"
	case !utf8.ValidString(name):
		return "it is not UTF-8 text"
	case strings.ContainsFunc(name, misleading):
		return "it has control characters"
	case reserved(name):
		return "the name " + books + " is reserved"
	}
	return ""
}

// misleading are characters that hide a name, or show it differently from what
// it is, where people read it.
func misleading(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// reserved reports whether a disk could take the name for that of the
// bookkeeping folder: some know no case, and some ignore characters that
// nobody sees.
func reserved(name string) bool {
	visible := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, name)
	return strings.EqualFold(strings.TrimRight(visible, " ."), books)
}

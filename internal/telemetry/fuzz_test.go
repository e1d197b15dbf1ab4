package telemetry

import "testing"

// FuzzParse: a traceparent that is kept is one, and stays as it is.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0-0-0", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		kept := Clean(text)
		if kept != "" && (len(kept) != 55 || Clean(kept) != kept) {
			t.Fatalf("%q is kept as %q", text, kept)
		}
	})
}

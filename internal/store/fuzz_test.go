package store

import "testing"

// FuzzParseJobID: whatever is read as the id of a job has that number and that UUID, and
// no other text is read as the same.
func FuzzParseJobID(f *testing.F) {
	for _, text := range []string{"1", "01", "-1", "9223372036854775807", JobUUID(1 << 22), JobUUID(1<<63 - 1), "00000000-0000-8000-8000-000000000000", "{" + JobUUID(5<<22) + "}", "urn:uuid:" + JobUUID(5<<22), "99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := ParseJobID(text)
		if !ok {
			return
		}
		again, ok := ParseJobID(JobUUID(id))
		if id <= 0 || !ok && id >= 1<<22 || ok && again != id {
			t.Fatalf("%q is job %d, whose UUID %s is %d, %v", text, id, JobUUID(id), again, ok)
		}
	})
}

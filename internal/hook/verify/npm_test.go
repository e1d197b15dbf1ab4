package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/npmtest"
)

// toSign is what a library of a vendor is to sign.
type toSign struct {
	Scheme string `json:"scheme"`
	Secret string `json:"secret"`
	ID     string `json:"id"`
	At     int64  `json:"at"`
	Body   string `json:"body"`
}

// signByVendors lets the libraries that testdata pins sign.
func signByVendors(t *testing.T, list []toSign) []http.Header {
	t.Helper()
	folder := npmtest.Install(t, os.DirFS("testdata"))
	in, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "sign.mjs")
	node.Dir, node.Stdin, node.Stderr = folder, bytes.NewReader(in), os.Stderr
	out, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	var signed []map[string]string
	if err := json.Unmarshal(out, &signed); err != nil || len(signed) != len(list) {
		t.Fatalf("the libraries answered %s: %v", out, err)
	}
	headers := make([]http.Header, len(signed))
	for i, fields := range signed {
		headers[i] = http.Header{}
		for name, value := range fields {
			headers[i].Set(name, value)
		}
	}
	return headers
}

// What the vendors' own libraries sign is believed, and nothing of it can be changed:
// not a byte of the body, not the secret, not the id or the time where they are
// signed.
func TestVendorsSign(t *testing.T) {
	const at = 1_700_000_000
	now := time.Unix(at, 0).Add(90 * time.Second)
	secrets := map[string]string{GitHub: "It's a Secret to Everybody", Standard: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", Stripe: "whsec_9f8a"}
	var list []toSign
	for _, scheme := range []string{GitHub, Standard, Stripe} {
		for _, body := range []string{"{}", `{"action":"opened","n":1}`, "{\"name\":\"Zoë \u2028 \\u0000\"}", string(bytes.Repeat([]byte("x"), 70_000))} {
			list = append(list, toSign{scheme, secrets[scheme], "msg_2Lh9KRb0pzN4LePd3XiA4v12Axj", at, body})
		}
	}
	for i, h := range signByVendors(t, list) {
		c := list[i]
		s := Settings{Scheme: c.Scheme, Tolerance: 5 * time.Minute}
		v := verifier(t, s, c.Secret)
		if err := v.Check(h, []byte(c.Body), now); err != nil {
			t.Errorf("%s of %d bytes is refused: %v", c.Scheme, len(c.Body), err)
		}
		refusedWith(t, c.Scheme+", another body", v.Check(h, []byte(c.Body+" "), now), BadSignature)
		other := verifier(t, s, "whsec_"+"c29tZXRoaW5nIGVsc2U=")
		refusedWith(t, c.Scheme+", another secret", other.Check(h, []byte(c.Body), now), BadSignature)
		refusedWith(t, c.Scheme+", cut off", v.Check(h, []byte(c.Body[:len(c.Body)-1]), now), BadSignature)
		if c.Scheme == GitHub {
			continue
		}
		refusedWith(t, c.Scheme+", old", v.Check(h, []byte(c.Body), time.Unix(at+301, 0)), TooOld)
		refusedWith(t, c.Scheme+", ahead", v.Check(h, []byte(c.Body), time.Unix(at-301, 0)), TooNew)
		for _, skew := range []int64{-300, 300} {
			if err := v.Check(h, []byte(c.Body), time.Unix(at+skew, 0)); err != nil {
				t.Errorf("%s with a clock %d s away: %v", c.Scheme, skew, err)
			}
		}
	}
	h := signByVendors(t, []toSign{{Standard, secrets[Standard], "msg_1", at, "{}"}})[0]
	for name, value := range map[string]string{"webhook-id": "msg_2", "webhook-timestamp": fmt.Sprint(at + 1)} {
		changed := h.Clone()
		changed.Set(name, value)
		refusedWith(t, "another "+name, verifier(t, Settings{Scheme: Standard, Tolerance: time.Hour}, secrets[Standard]).Check(changed, []byte("{}"), now), BadSignature)
	}
}

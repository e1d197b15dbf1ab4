package smtp

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestDefinitionsAreChecked(t *testing.T) {
	const good = "host: smtp.example.com\nfrom: robot@example.com\n"
	for definition, want := range map[string]string{
		good: "", good + "port: 465": "", good + "tls: implicit\nport: 10465\ntimeout: 2m\n" + login: "", "host: ::1\nfrom: Robot <robot@example.com>": "",

		"from: robot@example.com": "host is missing", "host: smtp.example.com": "from is missing",
		"host: smtp.example.com:587\nfrom: a@example.com": "the port has a field of its own", "host: \"smtps://x\"\nfrom: a@example.com": "is not the name of a host",
		good + "port: 0": "port must be from 1 to 65535", good + "port: 70000": "port must be", good + "port: smtp": "port must be",
		good + "tls: start": `tls "start" is not known. It is one of`, good + "tls: startls": "Did you mean starttls?", good + "tls: true": "tls must be a text",
		good + "username: robot": "there is a username and no password", good + "password: x": "there is a password and no username",
		good + "username: robot\npassword: ${MISSING}": "the environment variable MISSING is not set",
		good + "username: robot\npassword: \"a\\nb\"":  "holds a line break",
		good + "timeout: 0s":                           "timeout must be from 1s to 10m",
		good + "attachments: yes":                      `unknown field "attachments"`,
		"host: h\nfrom: robot":                         "is not an address", "host: h\nfrom: \"a@example.com\\nBcc: b@example.com\"": "has a line break",
	} {
		_, ok, faults := define(t, environment(t), definition)
		if want == "" && (!ok || faults != "") || want != "" && (!strings.Contains(faults, want) || ok && !strings.Contains(want, "unknown field")) {
			t.Errorf("%q is accepted (%v) with %q, want %q", definition, ok, faults, want)
		}
	}
}

func TestDefinitionsHaveDefaults(t *testing.T) {
	for definition, want := range map[string]string{"": "587 starttls", "port: 25": "25 starttls", "port: 465": "465 implicit", "port: 465\ntls: starttls": "465 starttls"} {
		s, ok, faults := define(t, connector.Env{CheckOnly: true}, "host: smtp.example.com\nfrom: robot@example.com\n"+definition)
		if !ok {
			t.Fatal(faults)
		}
		port, tls, _ := strings.Cut(want, " ")
		same(t, []string{"smtp.example.com:" + port, tls}, []string{s.server.Address(), string(s.server.TLS)})
		same(t, time.Minute, s.server.Timeout)
	}
}

package smtp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Nothing of these reaches a server.
func TestBadMessagesAreRefused(t *testing.T) {
	server := newServer(t, nil)
	s := connectTo(t, server, "tls: none")
	with := func(name string, value any) object {
		args := object{"to": "ann@example.com", "text": "x"}
		args[name] = value
		return args
	}
	many := make([]string, mostRecipients+1)
	for i := range many {
		many[i] = "ann@example.com"
	}
	headers := object{}
	for i := range mostHeaders + 1 {
		headers["X-"+strings.Repeat("a", i+1)] = "1"
	}
	for name, args := range map[string]any{
		"nothing": nil, "no text": object{"to": "ann@example.com"}, "no recipient": object{"text": "x"}, "an empty list": with("to", []string{}),
		"many":   with("to", many),
		"number": with("to", 1), "list of numbers": with("cc", []int{1}), "unknown": with("attachments", []string{}), "subject": with("subject", 1),

		"no address": with("to", "ann"), "empty": with("to", ""), "two": with("to", "ann@example.com, bob@example.com"),
		"break in address": with("to", "ann@example.com\r\nRCPT TO:<evil@example.com>"), "break in cc": with("cc", "ann\n@example.com"), "break in bcc": with("bcc", []string{"ok@example.com", "a\r@example.com"}),
		"break in name": with("to", "Ann\r\nBcc: evil@example.com <ann@example.com>"), "break in replyTo": with("replyTo", "a@example.com\nX: y"),
		"encoded break in name": with("to", "=?utf-8?q?Ann=0D=0ABcc:_evil?= <ann@example.com>"),
		"quoted break":          with("to", "\"a\r\n\"@example.com"), "quoted": with("to", `"a b"@example.com`), "route": with("to", `"<evil@example.com>"@example.com`),
		"not ASCII": with("to", "änn@example.com"), "domain not ASCII": with("to", "ann@exämple.com"), "literal": with("to", "ann@[127.0.0.1]"),
		"long local": with("to", strings.Repeat("a", 65)+"@example.com"), "long name": with("to", strings.Repeat("n", 201)+" <ann@example.com>"),

		"break in subject": with("subject", "Hi\r\nBcc: evil@example.com"), "bare CR": with("subject", "Hi\rX"), "bare LF": with("subject", "Hi\nX"), "NEL": with("subject", "Hi\u0085X"),
		"LS": with("subject", "Hi\u2028X"), "zero": with("subject", "Hi\x00"), "long subject": with("subject", strings.Repeat("s", 2001)),

		"header with a break": with("headers", object{"X-A": "1\r\nBcc: evil@example.com"}), "name with a break": with("headers", object{"X-A\r\nBcc": "evil@example.com"}),
		"name with a colon": with("headers", object{"X-A: 1": "2"}), "empty name": with("headers", object{"": "1"}), "name with a space": with("headers", object{"X A": "1"}),
		"own": with("headers", object{"bcc": "evil@example.com"}), "from": with("headers", object{"FROM": "evil@example.com"}), "content": with("headers", object{"Content-Type": "text/html"}),
		"twice": with("headers", object{"X-A": "1", "x-a": "2"}), "many headers": with("headers", headers), "header is a list": with("headers", object{"X-A": []string{"1"}}),

		"too large": with("text", strings.Repeat("12345678\n", largestMessage/9)),
	} {
		e := fail(t, t.Context(), s, callOf(t, "key", args))
		if checkFault(t, e, pawl.ClassLogic, connector.CodeBadArguments); len(e.Msg) > 400 {
			t.Errorf("%s is told at length: %.100s", name, e.Msg)
		}
	}
	if server.heard() != "" {
		t.Errorf("the server heard\n%s", server.heard())
	}
	checkFault(t, fail(t, t.Context(), s, connector.Call{Method: "read", Key: "key", Args: json.RawMessage("{}")}), pawl.ClassLogic, "unknown_method")
	checkFault(t, fail(t, t.Context(), s, callOf(t, "", hello)), pawl.ClassInternal, "no_key")
}

func TestServersThatTakeLessAreNotTried(t *testing.T) {
	server := newServer(t, func(s *smtpServer) { s.offers = []string{"SIZE 1000"} })
	s := connectTo(t, server, "tls: none")
	checkFault(t, fail(t, t.Context(), s, callOf(t, "key", object{"to": "ann@example.com", "text": strings.Repeat("x", 1000)})), pawl.ClassLogic, "too_large")
	if strings.Contains(server.heard(), "MAIL") {
		t.Errorf("the server heard\n%s", server.heard())
	}
	send(t, s, "key", hello)
}

func TestOneRefusedRecipientStopsTheMessage(t *testing.T) {
	server := newServer(t, func(s *smtpServer) { s.fault = fault{stepTarget, "550 5.1.1 no such user"} })
	e := fail(t, t.Context(), connectTo(t, server, "tls: none"), callOf(t, "key", hello))
	checkFault(t, e, pawl.ClassLogic, "refused")
	if want := "the server refused RCPT TO ann@example.com: 550 5.1.1 no such user"; !strings.HasSuffix(e.Msg, want) {
		t.Errorf("told as %q, want %q", e.Msg, want)
	}
	if heard := server.heard(); strings.Contains(heard, "DATA") || !strings.HasSuffix(heard, "QUIT") {
		t.Errorf("the server heard\n%s", heard)
	}
}

func TestSendIsTheOnlyMethod(t *testing.T) {
	s := &Server{}
	same(t, []connector.Method{{Name: "send", Mutation: true}}, s.Methods())
	if answer, err := s.Reconcile(t.Context(), connector.Call{Method: "send", Key: "key"}); err == nil {
		t.Errorf("Reconcile = %v", answer)
	}
}

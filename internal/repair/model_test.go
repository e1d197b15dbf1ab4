package repair

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
)

func modelConfig(kind, url string) Config {
	return Config{Kind: kind, URL: url + "/", Model: "small", Key: testKey}
}

// a logic failure is handed to a model, which gets the evidence
// and gives a script.
func TestModelsAreAskedInTheirOwnFormat(t *testing.T) {
	user, err := evidencePrompt(sample())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		kind, stop, path, keyHeader, key string
		body                             map[string]any
	}{
		{KindOpenAI, "stop", "/chat/completions", "Authorization", "Bearer " + testKey, map[string]any{
			"model": "small",
			"messages": []any{
				map[string]any{"role": "system", "content": systemPrompt},
				map[string]any{"role": "user", "content": user},
			},
		}},
		{KindAnthropic, "end_turn", "/v1/messages", "X-Api-Key", testKey, map[string]any{
			"model": "small", "max_tokens": float64(DefaultMaxTokens), "system": systemPrompt,
			"messages": []any{map[string]any{"role": "user", "content": user}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			url, asked := serve(t, 200, nil, replyOf(t, tt.kind, goodReply, tt.stop))
			r := mustNew(t, modelConfig(tt.kind, url), localClient(t))
			got, err := r.Propose(t.Context(), sample())
			if err != nil {
				t.Fatal(err)
			}
			want := Proposal{Script: fixed, Explanation: "The name was wrong.", CostNote: "12 tokens in, 3 out"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.body, asked.body); diff != "" {
				t.Error(diff)
			}
			if asked.path != tt.path || asked.header.Get(tt.keyHeader) != tt.key {
				t.Errorf("asked %s with %v", asked.path, asked.header)
			}
			if r.Name() != tt.kind+" small" {
				t.Errorf("called %q", r.Name())
			}
		})
	}
}

func TestUnusableAnswersAreRejected(t *testing.T) {
	tests := []struct{ name, text, stop, words string }{
		{"no code block", "It cannot be repaired.", "", "no code block"},
		{"two code blocks", goodReply + goodReply, "", "more than one code block"},
		{"a block that does not end", "```ts\n" + fixed, "", "does not end"},
		{"another language", "```diff\n+x\n```", "", "not marked as ts"},
		{"an empty block", "```ts\n```", "", "is empty"},
		{"the same script", "```ts\n" + sample().Script + "```", "", "the one that failed"},
		{"a long script", "```ts\n" + strings.Repeat("x", MaxScript+1) + "\n```", "", "more than 512 KiB"},
		{"the key in the script", "```ts\nlet k = \"" + testKey + "\"\n```", "", "holds the key"},
		{"nothing", "", "", "no code block"},
		{"cut off", goodReply, "length", "raise maxTokens"},
	}
	for _, kind := range []string{KindOpenAI, KindAnthropic} {
		for _, tt := range tests {
			t.Run(kind+" "+tt.name, func(t *testing.T) {
				stop := tt.stop
				if stop == "length" && kind == KindAnthropic {
					stop = "max_tokens"
				}
				url, _ := serve(t, 200, nil, replyOf(t, kind, tt.text, stop))
				_, err := mustNew(t, modelConfig(kind, url), localClient(t)).Propose(t.Context(), sample())
				wantError(t, err, pawl.ClassInternal, true, tt.words)
			})
		}
	}
}

func TestRefusalsOfAServerAreClassified(t *testing.T) {
	echo := `{"error":{"message":"no: ` + testKey[:10] + `"}}`
	tests := []struct {
		name     string
		status   int
		body     string
		class    pawl.Class
		rejected bool
		words    string
	}{
		{"401", 401, echo, pawl.ClassAuth, false, "not accepted"},
		{"429", 429, `{"error":{"message":"slow down"}}`, pawl.ClassTransient, false, "answered 429: slow down"},
		{"500", 500, "<html>", pawl.ClassTransient, false, "answered 500"},
		{"529", 529, echo, pawl.ClassTransient, false, "not shown"},
		{"400", 400, `{"error":{"message":"no such model"}}`, pawl.ClassInternal, false, "no such model"},
		{"403", 403, echo, pawl.ClassInternal, false, "answered 403"},
		{"a string for an error", 404, `{"error":"x"}`, pawl.ClassInternal, false, "answered 404"},
		{"garbage", 200, "<html>hello</html>", pawl.ClassInternal, true, "sent no answer in the format"},
		{"JSON of another kind", 200, `{"ok":true}`, pawl.ClassInternal, true, "sent no answer in the format"},
		{"huge", 200, strings.Repeat(" ", maxAnswer+1), pawl.ClassInternal, false, "more than"},
	}
	for _, kind := range []string{KindOpenAI, KindAnthropic} {
		for _, tt := range tests {
			t.Run(kind+" "+tt.name, func(t *testing.T) {
				url, _ := serve(t, tt.status, http.Header{"Retry-After": {"7"}}, tt.body)
				_, err := mustNew(t, modelConfig(kind, url), localClient(t)).Propose(t.Context(), sample())
				e := mustFail(t, err, tt.class, tt.rejected, tt.words)
				if wants := tt.status == 429; wants && e.RetryAfter != 7*time.Second {
					t.Errorf("to wait %v", e.RetryAfter)
				}
			})
		}
	}
}

func TestSilentServerIsGivenUp(t *testing.T) {
	asked := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices that a client left only after that
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	cfg := modelConfig(KindOpenAI, server.URL)

	t.Run("after its timeout", func(t *testing.T) {
		cfg := cfg
		cfg.Timeout = 100 * time.Millisecond
		_, err := mustNew(t, cfg, localClient(t)).Propose(t.Context(), sample())
		wantError(t, err, pawl.ClassTransient, false, "127.0.0.1")
		<-asked
	})
	t.Run("when the caller gives up", func(t *testing.T) {
		shutdown := errors.New("shutdown")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-asked; cancel(shutdown) }()
		_, err := mustNew(t, cfg, localClient(t)).Propose(ctx, sample())
		wantError(t, err, pawl.ClassTransient, false, "given up")
		if !errors.Is(err, shutdown) {
			t.Errorf("%v does not say why", err)
		}
	})
}

func TestServersInsideTheNetworkNeedLeave(t *testing.T) {
	url, _ := serve(t, 200, nil, replyOf(t, KindOpenAI, goodReply, "stop"))
	_, err := mustNew(t, modelConfig(KindOpenAI, url), publicClient(t)).Propose(t.Context(), sample())
	wantError(t, err, pawl.ClassInternal, false, "127.0.0.1")
}

func TestLongerFenceHoldsAScriptWithFences(t *testing.T) {
	inner := "const help = `\n```\nx\n```\n`;\n"
	script, rest, err := codeBlock("Here.\r\n````typescript\r\n" + inner + "````\nDone.")
	if err != nil || script != inner || rest != "Here.\nDone." {
		t.Errorf("got %q, %q, %v", script, rest, err)
	}
	if _, _, err := codeBlock("```ts\n" + inner + "```"); err == nil {
		t.Error("a script that is torn by its own fences was accepted")
	}
}

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// Ask for a job, and see what became of it.
func ExampleClient_Enqueue() {
	server := fake(map[string]string{"POST /api/v1/jobs": `{"id":"17","task":"http","state":"pending"}`})
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL, Token: "pawl_..."})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	job, err := c.Enqueue(context.Background(), client.JobRequest{
		Task: "http", Payload: json.RawMessage(`{"url":"https://example.com/hook"}`), Delay: "5m", Key: "invoice-4711",
	})
	fmt.Println(job.ID, job.State, job.LastError == "", err)
	// Output: 17 pending true <nil>
}

// List what runs by itself and needs a person.
func ExampleClient_Lanes() {
	server := fake(map[string]string{"GET /api/v1/lanes": `{"items":[
		{"kind":"workflow","name":"mail-to-sheet","status":"Needs attention","issue":"It asks whether it may add a row.","nextAt":null},
		{"kind":"source","name":"prices","status":"Idle","issue":null,"nextAt":"2030-01-31T09:00:00.000Z"}],"nextCursor":null}`})
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	lanes, err := c.Lanes(context.Background(), "", 0)
	for _, lane := range lanes {
		if lane.Issue != "" {
			fmt.Println(lane.Name+":", lane.Issue)
		} else {
			fmt.Println(lane.Name+": next at", lane.NextAt)
		}
	}
	fmt.Println(err)
	// Output:
	// mail-to-sheet: It asks whether it may add a row.
	// prices: next at 2030-01-31 09:00:00 +0000 UTC
	// <nil>
}

// Errors are told apart by their code.
func ExampleClient_Run() {
	server := fake(nil)
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, err = c.Run(context.Background(), "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e")
	fmt.Println(errors.Is(err, pawl.ErrNotFound))
	// Output: true
}

// fake answers as a server would.
func fake(answers map[string]string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := answers[r.Method+" "+r.URL.Path]; text != "" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, text) //nolint:errcheck // an example
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"status":404,"code":"not_found","detail":"Not found."}`) //nolint:errcheck // an example
	}))
}

package mcp

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/npmtest"
)

// npmServer is the script of a server that others wrote, in the version that
// testdata pins.
func npmServer(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(npmtest.Install(t, os.DirFS("testdata")), "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
}

// node is a definition whose server is a script.
func (r *rig) node(script string, arguments []string, more ...string) string {
	command, err := json.Marshal(append([]string{"node", script}, arguments...))
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Join(append([]string{"kind: connection", "name: it", "type: mcp", "command: " + string(command)}, more...), "\n")
}

// classes are the tools of a connection by whether they are mutations.
func classes(c *Connection) (reads, mutations []string) {
	for _, m := range c.Methods() {
		if m.Mutation {
			mutations = append(mutations, m.Name)
		} else {
			reads = append(reads, m.Name)
		}
	}
	return reads, mutations
}

func TestFilesystemServer(t *testing.T) {
	r := newRig(t)
	data := filepath.Join(r.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	c := r.open(r.node(npmServer(t, "filesystem"), []string{data}))
	reads, mutations := classes(c)
	if diff := cmp.Diff([]string{"create_directory", "edit_file", "move_file", "write_file"}, mutations); diff != "" || len(reads) < 8 {
		t.Errorf("the reads are %v, the mutations differ: %s", reads, diff)
	}

	file := filepath.Join(data, "a.txt")
	must(t, c, "write_file", fmt.Sprintf(`{"path":%q,"content":"hello"}`, file))
	if text, err := os.ReadFile(file); err != nil || string(text) != "hello" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if got := must(t, c, "read_text_file", fmt.Sprintf(`{"path":%q}`, file)); got != `{"content":"hello"}` {
		t.Error(got)
	}
	_, fault := call(t.Context(), c, "read_text_file", `{"path":"/etc/hostname"}`)
	wantFault(t, fault, pawl.ClassLogic, "tool_error", true)
	_, fault = call(t.Context(), c, "write_file", fmt.Sprintf(`{"path":%q,"content":""}`, filepath.Join(r.dir, "outside")))
	wantFault(t, fault, pawl.ClassIndeterminate, "tool_error", false)
	_, fault = call(t.Context(), c, "write_file", fmt.Sprintf(`{"path":%q}`, file))
	wantFault(t, fault, pawl.ClassLogic, "bad_arguments", true)
}

func TestMemoryServer(t *testing.T) {
	r := newRig(t)
	definition := r.node(npmServer(t, "memory"), nil, "env: {MEMORY_FILE_PATH: "+filepath.Join(r.dir, "memory.jsonl")+"}")
	c := r.open(definition)
	must(t, c, "create_entities", `{"entities":[{"name":"Pawl","entityType":"tool","observations":["never lets go"]}]}`)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = r.open(definition)
	if got := must(t, c, "read_graph", ""); !strings.Contains(got, "never lets go") {
		t.Error(got)
	}
	if _, mutations := classes(c); len(mutations) != 6 {
		t.Errorf("the mutations are %v", mutations)
	}
}

func TestEverythingServer(t *testing.T) {
	t.Setenv("SOMEBODY_ELSES_KEY", "do-not-tell")
	r := newRig(t)
	script := npmServer(t, "everything")
	t.Run("program", func(t *testing.T) {
		r := newRig(t)
		c := r.open(r.node(script, []string{"stdio"}, "timeout: 3s", "env: {KEY: '${THE_KEY}'}"))
		tryEverything(t, c)
		environment := must(t, c, "get-env", "")
		if strings.Contains(environment, "SOMEBODY_ELSES_KEY") || !strings.Contains(environment, `\"KEY\": \"[secret THE_KEY]\"`) {
			t.Errorf("the environment is %s", environment)
		}
	})
	t.Run("network", func(t *testing.T) {
		tryEverything(t, r.open(r.network(startEverything(t, script), "timeout: 3s")))
	})
}

func tryEverything(t *testing.T, c *Connection) {
	t.Helper()
	if got := must(t, c, "echo", `{"message":"hi"}`); got != `{"content":[{"type":"text","text":"Echo: hi"}],"text":"Echo: hi"}` {
		t.Error(got)
	}
	if got := must(t, c, "get-sum", `{"a":2,"b":3}`); !strings.Contains(got, "The sum of 2 and 3 is 5.") {
		t.Error(got)
	}
	if got := must(t, c, "get-structured-content", `{"location":"Chicago"}`); !strings.HasPrefix(got, `{"conditions":`) {
		t.Error(got)
	}
	if got := must(t, c, "get-tiny-image", ""); !strings.Contains(got, `"mimeType":"image/png"`) {
		t.Errorf("%.200s", got)
	}
	must(t, c, "trigger-long-running-operation", `{"duration":0.2,"steps":2}`)
	_, fault := call(t.Context(), c, "trigger-long-running-operation", `{"duration":30,"steps":2}`)
	wantFault(t, fault, pawl.ClassTransient, "timeout", true)
	_, fault = call(t.Context(), c, "get-sum", `{"a":"x","b":3}`)
	wantFault(t, fault, pawl.ClassLogic, "bad_arguments", true)
	_, fault = call(t.Context(), c, "get-resource-reference", `{"resourceType":"Text","resourceId":-1}`)
	wantFault(t, fault, pawl.ClassLogic, "tool_error", true)
	if got := must(t, c, "echo", `{"message":"still there"}`); !strings.Contains(got, "still there") {
		t.Error(got)
	}
}

// startEverything starts the server on a free port of this machine and returns
// its address.
func startEverything(t *testing.T, script string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command("node", script, "streamableHttp")
	server.Env = append(os.Environ(), "PORT="+port)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	eventually(t, "the server listens", func() bool {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		return connection.Close() == nil
	})
	return "http://" + address
}

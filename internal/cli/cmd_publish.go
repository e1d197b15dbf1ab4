package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
)

func newPublishCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "publish WORKFLOW TOPIC", Short: "Publish an event to a workflow",
		Long: "Publishes an event to a topic of a workflow. If the topic already has an event with the same\n" +
			"ID, the event is a duplicate and is not published again.",
		Example: "  pawl publish mail-to-sheet mail.received --id m1 --payload '{\"from\": \"ann\"}'\n" +
			"  pawl publish mail-to-sheet mail.received --id m2 --payload @mail.json --input mail:message:m2 --title 'Mail from Ann'",
		GroupID: groupChange, Args: takes(2, 2), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	id := cmd.Flags().String("id", "", "`ID` of the event, unique in the topic (required)")
	payload := cmd.Flags().String("payload", "null", "payload of the event: `JSON`, @FILE, or - for stdin")
	input := cmd.Flags().String("input", "", "input that the event comes from, as `SOURCE:TYPE:ID`")
	title := cmd.Flags().String("title", "", "`TITLE` of the input (default its ID)")
	out := addOutputFlag(cmd, formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := workflowKind().pathOf(args[0]); err != nil {
			return err
		}
		body, err := outsideEvent(p, args[1], *id, *payload, *input, *title)
		if err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.Post(cmd.Context(), client.WorkflowPath(args[0], "events"), body)
		if err != nil {
			return err
		}
		if out.machine() {
			return writeMachine(p.Stdout, out.format, raw)
		}
		var done client.PublishedEvent
		if err := json.Unmarshal(raw, &done); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		_, err = fmt.Fprintf(p.Stdout, "event %s %s\n", *id, publishedWords(done, args[1], args[0]))
		return err
	}
	return cmd
}

// publishedWords says what became of an event.
func publishedWords(done client.PublishedEvent, topic, workflow string) string {
	where := topic + " of workflow " + workflow
	switch {
	case done.Changed:
		return "was known to " + where + " and waits; it has the new payload now"
	case done.Duplicate:
		return "was known to " + where + " already; it is " + done.Status
	}
	return "published to " + where
}

// outsideEvent makes the request from the flags.
func outsideEvent(p *Process, topic, id, payload, input, title string) (map[string]any, error) {
	if id == "" {
		return nil, usageError("Add --id with an id that is unique in the topic.", "the event needs an id")
	}
	content, err := readJSON(p, "--payload", payload)
	if err != nil {
		return nil, err
	}
	body := map[string]any{"topic": topic, "messageId": id, "payload": content}
	if input == "" {
		if title != "" {
			return nil, usageError("Add --input SOURCE:TYPE:ID.", "--title is that of an input, and there is none")
		}
		return body, nil
	}
	parts := strings.SplitN(input, ":", 3) // the id may have colons of its own
	if len(parts) < 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return nil, usageError("Write --input mail:message:42.", "--input: %q is not SOURCE:TYPE:ID", input)
	}
	if title == "" {
		title = parts[2]
	}
	body["input"] = map[string]string{"source": parts[0], "type": parts[1], "id": parts[2], "title": title}
	return body, nil
}

// readJSON takes JSON as a flag has it, from a file after @, or from stdin.
func readJSON(p *Process, flag, text string) (json.RawMessage, error) {
	raw, err := []byte(text), error(nil)
	if file, named := strings.CutPrefix(text, "@"); named {
		raw, err = os.ReadFile(p.path(file))
	} else if text == "-" {
		raw, err = io.ReadAll(p.Stdin)
	}
	if err != nil {
		return nil, usageError("", "%s: %s", flag, err)
	}
	if !json.Valid(raw) {
		return nil, usageError("Write JSON: "+flag+` '{"from": "ann"}', @FILE, or - for stdin.`, "%s: this is not JSON", flag)
	}
	return raw, nil
}

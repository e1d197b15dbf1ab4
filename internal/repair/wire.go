package repair

import (
	"encoding/json"
	"strings"
)

// message is one message of a conversation, in both formats.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

const cutOff = "it was truncated at the token limit; raise maxTokens"

// openai is the format of OpenAI's chat completions, which most servers speak.
type openai struct{}

func (openai) path() string { return "/chat/completions" }

func (openai) headers(key string) map[string]string {
	if key == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + key}
}

// question names the limit of tokens only when one is set: servers disagree
// about the field, and its absence suits them all.
func (openai) question(cfg Config, system, user string) any {
	return struct {
		Model     string    `json:"model"`
		Messages  []message `json:"messages"`
		MaxTokens int       `json:"max_completion_tokens,omitempty"`
	}{cfg.Model, []message{{"system", system}, {"user", user}}, cfg.MaxTokens}
}

func (openai) answer(body []byte) (completion, error) {
	var a struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"` // null becomes empty
			} `json:"message"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			In  int `json:"prompt_tokens"`
			Out int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &a); err != nil || len(a.Choices) == 0 {
		return completion{}, rejected("the model's server sent no answer in the format of chat completions")
	}
	c := completion{text: a.Choices[0].Message.Content, in: a.Usage.In, out: a.Usage.Out}
	switch a.Choices[0].FinishReason {
	case "length":
		c.stopped = cutOff
	case "content_filter":
		c.stopped = "the server's filter held it back"
	}
	return c, nil
}

// anthropic is the format of Anthropic's messages.
type anthropic struct{}

func (anthropic) path() string { return "/v1/messages" }

func (anthropic) headers(key string) map[string]string {
	h := map[string]string{"anthropic-version": "2023-06-01"}
	if key != "" {
		h["x-api-key"] = key
	}
	return h
}

func (anthropic) question(cfg Config, system, user string) any {
	return struct {
		Model     string    `json:"model"`
		MaxTokens int       `json:"max_tokens"`
		System    string    `json:"system"`
		Messages  []message `json:"messages"`
	}{cfg.Model, cfg.MaxTokens, system, []message{{"user", user}}}
}

func (anthropic) answer(body []byte) (completion, error) {
	var a struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		StopReason string `json:"stop_reason"`
		Usage      struct {
			In  int `json:"input_tokens"`
			Out int `json:"output_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &a); err != nil || len(a.Content) == 0 && a.StopReason == "" {
		return completion{}, rejected("the model's server sent no answer in the format of messages")
	}
	var text strings.Builder
	for _, part := range a.Content {
		if part.Type == "text" {
			text.WriteString(part.Text)
		}
	}
	c := completion{text: text.String(), in: a.Usage.In, out: a.Usage.Out}
	switch a.StopReason {
	case "max_tokens":
		c.stopped = cutOff
	case "refusal":
		c.stopped = "the model refused"
	}
	return c, nil
}

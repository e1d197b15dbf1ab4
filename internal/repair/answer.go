package repair

import (
	"slices"
	"strings"
)

// codeBlock takes the script out of an answer: the inside of its only fenced
// code block. rest is what is written around it. A block ends at a line of at
// least as many backquotes as it began with, so a script that holds such a
// line itself is found whole inside a longer fence, and refused otherwise.
func codeBlock(text string) (script, rest string, err error) {
	var inside, outside []string
	fence, blocks := "", 0
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		ticks, info := fenceOf(line)
		switch {
		case fence == "" && ticks == "":
			outside = append(outside, line)
		case fence == "":
			if blocks++; blocks > 1 {
				return "", "", rejected("the answer has more than one code block; the whole script has to be in one")
			}
			if !isScript(info) {
				return "", "", rejected("the code block of the answer is not marked as ts")
			}
			fence = ticks
		case info == "" && len(ticks) >= len(fence):
			fence = ""
		default:
			inside = append(inside, line)
		}
	}
	switch {
	case blocks == 0:
		return "", "", rejected("the answer has no code block; the whole script has to be in one")
	case fence != "":
		return "", "", rejected("the code block of the answer does not end")
	}
	return strings.Join(inside, ""), strings.TrimSpace(strings.Join(outside, "")), nil
}

// fenceOf returns the backquotes that a line begins with, if there are enough
// for a fence, and the words after them.
func fenceOf(line string) (ticks, info string) {
	line = strings.TrimSpace(line)
	rest := strings.TrimLeft(line, "`")
	if len(line)-len(rest) < 3 {
		return "", ""
	}
	return line[:len(line)-len(rest)], strings.TrimSpace(rest)
}

func isScript(info string) bool {
	language, _, _ := strings.Cut(strings.ToLower(info), " ")
	return slices.Contains([]string{"ts", "typescript", "js", "javascript"}, language)
}

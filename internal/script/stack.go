package script

import (
	"regexp"
	"strconv"
	"strings"
)

// engineFrame is a place in the engine's words, such as <eval>:1012:7.
var engineFrame = regexp.MustCompile(`<eval>:(\d{1,9}):(\d{1,9})`)

// mostFrames is how many frames of a stack are kept, from the innermost on.
const mostFrames = 20

// mapStack rewrites a stack of the engine to places in the source and returns
// the innermost. The text comes from a script and may be anything.
func (p *Program) mapStack(stack string) (string, Place) {
	frames := p.mapLines(stack)
	if len(frames) > mostFrames {
		frames = append(frames[:mostFrames], "    ...")
	}
	var innermost Place
	for line := range strings.SplitSeq(stack, "\n") {
		if place, _ := p.placeIn(line); place.Line > 0 {
			innermost = place
			break
		}
	}
	return strings.Join(frames, "\n"), innermost
}

// mapText rewrites every place of the engine in some text.
func (p *Program) mapText(text string) string {
	if !strings.Contains(text, "<eval>:") {
		return text
	}
	return strings.Join(p.mapLines(text), "\n")
}

// mapLines rewrites places and leaves out the prelude's frames, with the call
// by which the prelude entered the script.
func (p *Program) mapLines(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if place, found := p.placeIn(line); found && place.Line == 0 {
			if n := len(lines); n > 0 && strings.TrimSpace(lines[n-1]) == "at apply (native)" {
				lines = lines[:n-1]
			}
			continue
		}
		lines = append(lines, engineFrame.ReplaceAllStringFunc(line, func(found string) string {
			place, _ := p.placeIn(found)
			return place.String()
		}))
	}
	return lines
}

// placeIn returns the first engine place of a line. A place of the prelude, or
// of code that esbuild added, is found and has no line.
func (p *Program) placeIn(line string) (place Place, found bool) {
	match := engineFrame.FindStringSubmatch(line)
	if match == nil {
		return Place{}, false
	}
	return p.place(match[1], match[2]), true
}

func (p *Program) place(line, column string) Place {
	l, _ := strconv.Atoi(line) // digits alone, see engineFrame
	c, _ := strconv.Atoi(column)
	m := p.places()
	if m == nil {
		return Place{}
	}
	place := m.find(l-lineShift-1, max(c-1, 0)) // the prelude's lines are before all
	if place.File != sourceFile {
		return Place{} // the module "pawl"
	}
	place.File = p.File
	return place
}

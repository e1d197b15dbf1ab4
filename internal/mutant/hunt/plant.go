package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
)

// switches is the package that planted code asks; its name here can hide no
// other.
const (
	switches      = "github.com/pawlrun/pawl/internal/mutant"
	switchesAlias = "pawlmutant"
)

// fault is one way in which the code could be wrong.
type fault struct {
	id      int
	place   token.Position
	what    string // for people: the condition that is turned round, or the step that is left out
	verdict verdict
}

// planter writes a copy of a file in which every fault can be switched on. It
// inserts text and moves no line, so that places stay true.
type planter struct {
	next   int
	faults []*fault

	set   *token.FileSet
	text  []byte
	texts []insertion
}

type insertion struct {
	at   int
	text string
}

// plant reads a file and returns its copy.
func (p *planter) plant(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	p.set, p.text, p.texts = token.NewFileSet(), text, nil
	file, err := parser.ParseFile(p.set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	found := len(p.faults)
	ast.Inspect(file, p.visit)
	if len(p.faults) == found {
		return text, nil
	}
	p.insert(file.Name.End(), fmt.Sprintf("; import %s %q", switchesAlias, switches))
	return p.copy(), nil
}

func (p *planter) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.IfStmt:
		p.conditions(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, clause := range n.Body.List {
				for _, condition := range clause.(*ast.CaseClause).List {
					p.conditions(condition)
				}
			}
		}
	case *ast.FuncDecl:
		p.answers(n.Type, n.Body)
	case *ast.FuncLit:
		p.answers(n.Type, n.Body)
	case *ast.BlockStmt:
		p.steps(n.List)
	case *ast.CaseClause:
		p.steps(n.Body)
	case *ast.CommClause:
		p.steps(n.Body)
	}
	return true
}

// conditions plants a fault at each part of a condition.
func (p *planter) conditions(e ast.Expr) {
	switch n := e.(type) {
	case *ast.ParenExpr:
		p.conditions(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			p.conditions(n.X)
			return
		}
		p.flip(e)
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			p.conditions(n.X)
			p.conditions(n.Y)
			return
		}
		p.flip(e)
	default:
		p.flip(e)
	}
}

func (p *planter) flip(e ast.Expr) {
	id := p.add(e.Pos(), "turned round: "+p.source(e))
	p.insert(e.Pos(), fmt.Sprintf("%s.Flip(%d, ", switchesAlias, id))
	p.insert(e.End(), ")")
}

// answers plants faults where a function that answers yes or no returns.
func (p *planter) answers(of *ast.FuncType, body *ast.BlockStmt) {
	if body == nil || of.Results == nil || len(of.Results.List) != 1 {
		return
	}
	if kind, plain := of.Results.List[0].Type.(*ast.Ident); !plain || kind.Name != "bool" {
		return
	}
	ast.Inspect(body, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if len(n.Results) == 1 {
				p.conditions(n.Results[0])
			}
		}
		return true
	})
}

// steps plants a fault at each statement that can be left out without the
// compiler noticing.
func (p *planter) steps(list []ast.Stmt) {
	for _, step := range list {
		if !removable(step) {
			continue
		}
		id := p.add(step.Pos(), "left out: "+p.source(step))
		p.insert(step.Pos(), fmt.Sprintf("if %s.Keep(%d) { ", switchesAlias, id))
		p.insert(step.End(), " }")
	}
}

func removable(step ast.Stmt) bool {
	switch n := step.(type) {
	case *ast.ExprStmt:
		call, ok := n.X.(*ast.CallExpr)
		return ok && !slices.Contains(uninteresting, called(call))
	case *ast.AssignStmt:
		return n.Tok != token.DEFINE && !slices.ContainsFunc(n.Lhs, blank)
	case *ast.GoStmt, *ast.IncDecStmt, *ast.SendStmt:
		return true
	}
	return false
}

// uninteresting calls end a function, hang it when they are missing, or tell
// nobody but a log.
var uninteresting = []string{ //nolint:gochecknoglobals // a constant list
	"panic", "close", "Lock", "Unlock", "RLock", "RUnlock", "Done", "Wait", "Add", "Close",
	"Debug", "Info", "Warn", "Error", "DebugContext", "InfoContext", "WarnContext", "ErrorContext", "Log",
	"Exit", "WriteString", "WriteByte", "Fprintf", "Fprintln", "Fprint",
}

func called(call *ast.CallExpr) string {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name
	case *ast.SelectorExpr:
		return fn.Sel.Name
	}
	return ""
}

func blank(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "_"
}

func (p *planter) add(at token.Pos, what string) int {
	p.next++
	p.faults = append(p.faults, &fault{id: p.next, place: p.set.Position(at), what: what})
	return p.next
}

// source is the first line of a piece of code.
func (p *planter) source(node ast.Node) string {
	line, _, more := strings.Cut(string(p.text[p.offset(node.Pos()):p.offset(node.End())]), "\n")
	if more {
		line += " ..."
	}
	return line
}

func (p *planter) insert(at token.Pos, text string) {
	p.texts = append(p.texts, insertion{p.offset(at), text})
}

func (p *planter) offset(at token.Pos) int { return p.set.Position(at).Offset }

// copy is the text with all insertions. Of those at one place, the outer one
// comes first where it opens and last where it closes; that is the order in
// which they were found for openings, and the reverse for closings.
func (p *planter) copy() []byte {
	opens := func(i insertion) bool { return !strings.HasSuffix(i.text, ")") && i.text != " }" }
	closing := []insertion{}
	opening := []insertion{}
	for _, one := range p.texts {
		if opens(one) {
			opening = append(opening, one)
		} else {
			closing = append(closing, one)
		}
	}
	slices.Reverse(closing)
	all := append(closing, opening...) // at one place, what ends there ends before the next begins
	slices.SortStableFunc(all, func(a, b insertion) int { return a.at - b.at })
	var out []byte
	last := 0
	for _, one := range all {
		out = append(append(out, p.text[last:one.at]...), one.text...)
		last = one.at
	}
	return append(out, p.text[last:]...)
}

package definition_test

import (
	"fmt"

	"github.com/pawlrun/pawl/internal/definition"
)

// A definition is read into a struct, whose tags say what is allowed. Every fault
// has its place.
func ExampleRead() {
	documents, err := definition.Read("prices.yaml", []byte("kind: source\nname: prices\nmode: apend\n"))
	if err != nil {
		panic(err)
	}
	var written struct {
		Name string `json:"name" definition:"required"`
		Mode string `json:"mode" definition:"oneof=append|upsert"`
		URL  string `json:"url" definition:"required"`
	}
	faults := documents[0].Check(&written)
	for _, f := range faults.Fields() {
		fmt.Printf("%s:%d:%d: %s\n", f.File, f.Line, f.Column, f.Message)
	}
	// Output:
	// prices.yaml:1:1: url is missing
	// prices.yaml:3:7: mode "apend" is not known. Did you mean append?
}

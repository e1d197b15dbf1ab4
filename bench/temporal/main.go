// Command temporal runs workflows of three activities on a Temporal server and a
// worker, for the program that started it: bench/workflow. It is a module of
// its own, because the server is large.
package main

import "github.com/pawlrun/pawl/bench/subject/peer"

func main() {
	peer.Main(peer.Program{Module: "go.temporal.io/server", AtOnce: atOnce, Open: open})
}

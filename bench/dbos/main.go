// Command dbos runs workflows of three steps on DBOS Transact, for the program
// that started it: bench/workflow. It is a module of its own, so that nothing
// else depends on DBOS.
package main

import "github.com/pawlrun/pawl/bench/subject/peer"

func main() {
	peer.Main(peer.Program{Module: "github.com/dbos-inc/dbos-transact-golang", AtOnce: atOnce, Open: open})
}

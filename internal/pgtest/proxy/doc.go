// Package proxy puts itself between a program and PostgreSQL and does to their
// connections what networks do: delay, stand still, go silently dead, break, and
// lose the answer to a statement that the server has carried out.
//
//	p := proxy.New(t, pgtest.URL(t))
//	db := open(p.URL())
//	p.LoseAnswers("COMMIT", 1) // the next commit happens, and nobody hears of it
//
// It reads the protocol only as far as it must to find the answers that are to
// be lost, so connections are not encrypted. Each method holds for the
// connections it names, until another one is called.
package proxy

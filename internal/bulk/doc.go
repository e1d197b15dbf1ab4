// Package bulk fills a database with what years of use leave behind, and tells
// what a statement costs there. It is for tests and benchmarks only.
//
// Fill multiplies a workflow, a source and a schedule that are there already,
// because only the product knows what a definition looks like, and then gives
// them runs with everything that hangs on runs. What is rare in life is rare
// here, and at the far end: a list that looks for it without an index reads
// everything. A tenth of all runs is in one lane of each kind.
package bulk

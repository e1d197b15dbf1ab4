module github.com/pawlrun/pawl/bench/subject

go 1.26.0

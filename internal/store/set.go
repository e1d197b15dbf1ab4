package store

// Sets brings together what many want to do at the same time: the first that come
// do it at once, and those that come meanwhile are the next set. The zero value is
// ready.
type Sets[T any] struct{ line[*inSet[T]] }

type inSet[T any] struct {
	one  T
	turn chan bool // true: it leads
}

const (
	maxSet        = 128 // that go together
	maxSetLeaders = 2   // sets that are under way at once: while one is at the disk, another one can be computed
)

// Do does one together with those that wait, and returns when it is done.
func (s *Sets[T]) Do(one T, all func([]T)) {
	me := &inSet[T]{one: one, turn: make(chan bool, 1)}
	if !s.enter(me, maxSetLeaders) && !<-me.turn {
		return // it was taken along
	}
	set := []T{one}
	others := s.gather(func(o *inSet[T]) bool {
		if len(set) == maxSet {
			return false
		}
		set = append(set, o.one)
		return true
	})
	defer func() { // also if it panics
		for _, o := range others {
			o.turn <- false
		}
		if next, ok := s.pass(); ok {
			next.turn <- true
		}
	}()
	all(set)
}

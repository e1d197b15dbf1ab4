package script

import (
	"math/bits"
	"slices"
)

// arena is the memory of one JavaScript engine, its own records included. As
// nothing else points into it from outside, a copy of what is in use is an
// image of the engine, and copying it back makes the engine what it was: no
// script can leave anything behind.
//
// It gives out blocks by two-level segregated fit: free blocks are in lists by
// size, and two bitmaps find a list that fits. Everything is counted in words of
// eight bytes. A block is a head of two words, which are its size with the flag
// of being free and where the block before it begins, and then what was asked
// for; a free one has its neighbours in the list there.
type arena struct {
	words []uint64
}

// The records are the first words.
const (
	arenaTop    = 0 // where no block has been yet
	arenaLast   = 1 // the block before that; 0 is none
	arenaGroups = 2 // bits: groups with a list that is not empty
	arenaRows   = 3 // for each group, bits: lists that are not empty
	arenaLists  = arenaRows + groups
	arenaFirst  = arenaLists + groups*rows

	groups = 32 // by the power of two of a size
	rows   = 16 // lists in a group
	head   = 2  // words before what was asked for
	free   = 1  // flag in the size
	shift  = 1  // of the size
)

// newArena makes one on memory that is zero.
func newArena(words []uint64) *arena {
	a := &arena{words: words}
	a.words[arenaTop] = (arenaFirst + 1) &^ 1 // what is given out begins at multiples of 16 bytes
	return a
}

// used is how many words there are up to the end of the last block.
func (a *arena) used() int { return int(a.words[arenaTop]) }

// save makes an image of everything.
func (a *arena) save() []uint64 { return append([]uint64(nil), a.words[:a.used()]...) }

// restore makes everything what it was. What is behind becomes zero.
func (a *arena) restore(image []uint64) {
	if was := a.used(); was > len(image) {
		wipe(a.words[len(image):was])
	}
	copy(a.words, image)
}

// differ makes an image of what is not as it was in base, or is behind its end.
func (a *arena) differ(base []uint64) *image {
	now, kept := a.words[:a.used()], &image{}
	size := 0
	for at := 0; at < len(now); at += blockWords {
		if end := min(at+blockWords, len(now)); end > len(base) || !slices.Equal(now[at:end], base[at:end]) {
			kept.blocks = append(kept.blocks, uint32(at/blockWords))
			size += end - at
		}
	}
	kept.words = make([]uint64, 0, size)
	for _, n := range kept.blocks {
		at := int(n) * blockWords
		kept.words = append(kept.words, now[at:min(at+blockWords, len(now))]...)
	}
	return kept
}

// apply makes everything what it was when the image was made, if it is now what
// the image differs from.
func (a *arena) apply(from *image) {
	rest := from.words
	for _, n := range from.blocks {
		at := int(n) * blockWords
		rest = rest[copy(a.words[at:min(at+blockWords, len(a.words))], rest):]
	}
}

// listOf is the list that a free block of a size belongs to.
func listOf(size uint64) (group, row int) {
	if size < rows {
		return 0, int(size)
	}
	power := bits.Len64(size) - 1 // at least 4
	return power - 3, int(size>>(power-4)) - rows
}

// alloc returns where a block of at least so many bytes begins, 0 if there is no
// room.
func (a *arena) alloc(bytes uint64) uint64 {
	if bytes > uint64(len(a.words))*8 {
		return 0
	}
	size := max((bytes+15)/16*2, 2)
	if b := a.find(size); b != 0 {
		a.unlink(b)
		a.cut(b, size)
		return b + head
	}
	b := a.words[arenaTop]
	if b+head+size > uint64(len(a.words)) {
		return 0
	}
	a.words[b], a.words[b+1] = size<<shift, a.words[arenaLast]
	a.words[arenaTop], a.words[arenaLast] = b+head+size, b
	return b + head
}

// find returns a free block that is large enough, 0 if there is none. It looks
// only into lists whose blocks all are.
func (a *arena) find(size uint64) uint64 {
	if size >= rows { // up to the next list
		size += 1<<(bits.Len64(size)-5) - 1
	}
	group, row := listOf(size)
	if group >= groups {
		return 0
	}
	if fits := a.words[arenaRows+group] >> row << row; fits != 0 {
		return a.words[arenaLists+group*rows+bits.TrailingZeros64(fits)]
	}
	larger := a.words[arenaGroups] >> (group + 1) << (group + 1)
	if larger == 0 {
		return 0
	}
	group = bits.TrailingZeros64(larger)
	return a.words[arenaLists+group*rows+bits.TrailingZeros64(a.words[arenaRows+group])]
}

func (a *arena) sizeOf(b uint64) uint64 { return a.words[b] >> shift }
func (a *arena) isFree(b uint64) bool   { return a.words[b]&free != 0 }

// behind is the block after b, 0 if b is the last one.
func (a *arena) behind(b uint64) uint64 {
	if next := b + head + a.sizeOf(b); next < a.words[arenaTop] {
		return next
	}
	return 0
}

// link puts a block into its list.
func (a *arena) link(b uint64) {
	group, row := listOf(a.sizeOf(b))
	list := &a.words[arenaLists+group*rows+row]
	a.words[b] |= free
	a.words[b+head], a.words[b+head+1] = *list, 0
	if *list != 0 {
		a.words[*list+head+1] = b
	}
	*list = b
	a.words[arenaRows+group] |= 1 << row
	a.words[arenaGroups] |= 1 << group
}

// unlink takes a block out of its list.
func (a *arena) unlink(b uint64) {
	group, row := listOf(a.sizeOf(b))
	next, before := a.words[b+head], a.words[b+head+1]
	if next != 0 {
		a.words[next+head+1] = before
	}
	if before != 0 {
		a.words[before+head] = next
	} else if a.words[arenaLists+group*rows+row] = next; next == 0 {
		a.words[arenaRows+group] &^= 1 << row
		if a.words[arenaRows+group] == 0 {
			a.words[arenaGroups] &^= 1 << group
		}
	}
	a.words[b] &^= free
}

// setSize gives a block in use another size, and tells the block behind it.
func (a *arena) setSize(b, size uint64) {
	a.words[b] = size << shift
	if next := a.behind(b); next != 0 {
		a.words[next+1] = b
	} else {
		a.words[arenaLast] = b
	}
}

// cut makes a free block of what a block in use has more than it needs, if that
// is worth it.
func (a *arena) cut(b, size uint64) {
	rest := a.sizeOf(b) - size
	if rest < head+2 {
		return
	}
	next := b + head + size
	a.words[b] = size << shift
	a.words[next+1] = b
	a.setSize(next, rest-head)
	a.release(next + head)
}

// release gives a block back. It becomes one with free neighbours.
func (a *arena) release(p uint64) {
	b := p - head
	if next := a.behind(b); next != 0 && a.isFree(next) {
		a.unlink(next)
		a.setSize(b, a.sizeOf(b)+head+a.sizeOf(next))
	}
	if before := a.words[b+1]; before != 0 && a.isFree(before) {
		a.unlink(before)
		a.setSize(before, a.sizeOf(before)+head+a.sizeOf(b))
		b = before
	}
	a.link(b)
}

// realloc gives a block another size and returns where it is now, 0 if there is
// no room; it is unchanged then.
func (a *arena) realloc(p, bytes uint64) uint64 {
	if bytes > uint64(len(a.words))*8 {
		return 0
	}
	b, size := p-head, max((bytes+15)/16*2, 2)
	if a.grow(b, size) {
		a.cut(b, size)
		return p
	}
	moved := a.alloc(bytes)
	if moved == 0 {
		return 0
	}
	copy(a.words[moved:], a.words[p:p+a.sizeOf(b)])
	a.release(p)
	return moved
}

// grow makes a block large enough where it is, if that can be.
func (a *arena) grow(b, size uint64) bool {
	if a.sizeOf(b) >= size {
		return true
	}
	next := a.behind(b)
	if next == 0 { // the last one takes of what was never used
		if b+head+size > uint64(len(a.words)) {
			return false
		}
		a.words[b], a.words[arenaTop] = size<<shift, b+head+size
		return true
	}
	if !a.isFree(next) || a.sizeOf(b)+head+a.sizeOf(next) < size {
		return false
	}
	a.unlink(next)
	a.setSize(b, a.sizeOf(b)+head+a.sizeOf(next))
	return true
}

// bytesOf is how many bytes can be used of a block.
func (a *arena) bytesOf(p uint64) uint64 { return a.sizeOf(p-head) * 8 }

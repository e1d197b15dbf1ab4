package script

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// Blocks never overlap, keep what is in them, and are found again after they
// were given back, whatever the order; and an image brings all of it back.
func TestArenaKeepsWhatIsInItsBlocks(t *testing.T) {
	for seed := range uint64(30) {
		chance := rand.New(rand.NewPCG(seed, 1))
		a := newArena(make([]uint64, 40_000))
		blocks := map[uint64]uint64{} // what every word of each has
		var base, whole []uint64
		var image *image
		var kept map[uint64]uint64
		fill := func(p, value uint64) {
			for i := range a.bytesOf(p) / 8 {
				a.words[p+i] = value
			}
			blocks[p] = value
		}
		some := func() (p uint64) {
			list := slices.Sorted(maps.Keys(blocks))
			return list[chance.IntN(len(list))]
		}
		for step := range 4_000 {
			size := uint64(chance.IntN(300))
			if chance.IntN(20) == 0 {
				size = uint64(chance.IntN(60_000))
			}
			switch n := chance.IntN(100); {
			case n < 45 || len(blocks) == 0:
				if p := a.alloc(size); p != 0 {
					if a.bytesOf(p) < size || p%2 != 0 {
						t.Fatalf("seed %d: %d bytes at %d for %d", seed, a.bytesOf(p), p, size)
					}
					fill(p, uint64(step)+1)
				}
			case n < 80:
				p := some()
				a.release(p)
				delete(blocks, p)
			case n < 97:
				p := some()
				value, was := blocks[p], a.bytesOf(p)/8
				if moved := a.realloc(p, size); moved != 0 {
					delete(blocks, p)
					for i := range min(was, a.bytesOf(moved)/8) {
						if a.words[moved+i] != value {
							t.Fatalf("seed %d: word %d of a block that moved is %d, want %d", seed, i, a.words[moved+i], value)
						}
					}
					fill(moved, value)
				}
			case base == nil:
				base = a.save()
			case image == nil:
				image, whole = a.differ(base), a.save()
				kept = maps.Clone(blocks)
			case n == 99:
				a.restore(base)
				a.apply(image)
				if !slices.Equal(whole, a.save()) {
					t.Fatalf("seed %d: it is not what it was", seed)
				}
				blocks = maps.Clone(kept)
				if i := slices.IndexFunc(a.words[a.used():], func(w uint64) bool { return w != 0 }); i >= 0 {
					t.Fatalf("seed %d: word %d behind the image is %d", seed, i, a.words[a.used()+i])
				}
			}
		}
		for p, value := range blocks {
			for i := range a.bytesOf(p) / 8 {
				if a.words[p+i] != value {
					t.Fatalf("seed %d: word %d of the block at %d is %d, want %d", seed, i, p, a.words[p+i], value)
				}
			}
		}
		for p := range blocks {
			a.release(p)
		}
		if first := uint64(arenaFirst+1) &^ 1; !a.isFree(first) || a.behind(first) != 0 {
			t.Errorf("seed %d: what was given back is in pieces", seed)
		}
	}
}

// What does not fit is refused and changes nothing.
func TestArenaRefusesWhatDoesNotFit(t *testing.T) {
	a := newArena(make([]uint64, 2_000))
	p := a.alloc(1_000)
	image := a.save()
	for _, size := range []uint64{16_000, 1 << 40, 1 << 62, ^uint64(0), ^uint64(0) - 15} {
		if got := a.alloc(size); got != 0 {
			t.Errorf("%d bytes are at %d", size, got)
		}
		if got := a.realloc(p, size); got != 0 {
			t.Errorf("%d bytes are at %d", size, got)
		}
	}
	if !slices.Equal(image, a.save()) {
		t.Error("the records changed")
	}
}

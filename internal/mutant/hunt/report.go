package main

import (
	"bytes"
	"fmt"
)

// report tells how many faults were noticed, a line for each package, and then
// once more as a table for docs/proof.md.
func (h *hunt) report() error {
	var text, table bytes.Buffer
	table.WriteString("\n| Package | Faults | Drawn | Noticed | Not noticed | Not reached | Share |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range h.programs {
		for _, one := range p.broken {
			fmt.Fprintf(&text, "%s: fails by itself and was left out\n", one)
		}
	}
	for _, p := range h.prey {
		count := map[verdict]int{}
		for _, f := range p.faults {
			count[f.verdict]++
		}
		share := 100
		if len(p.faults) > 0 {
			share = 100 * count[noticed] / len(p.faults)
		}
		fmt.Fprintf(&text, "%s: %d of %d faults noticed (%d%%), %d not noticed, %d not reached\n",
			p.name, count[noticed], len(p.faults), share, count[survived], count[unreached])
		fmt.Fprintf(&table, "| `%s` | %d | %d | %d | %d | %d | %d%% |\n",
			p.name, p.all, len(p.faults), count[noticed], count[survived], count[unreached], share)
	}
	_, err := h.out.Write(append(text.Bytes(), table.Bytes()...))
	return err
}

package prune

import (
	"context"
	"time"
)

// space is the name of the steps that give space back.
const space = "space"

// giveBack makes a SQLite file smaller that has much more room than it needs, a few
// pages at a time: the writer has the file to itself meanwhile. PostgreSQL sees to that
// by itself.
func (p *pass) giveBack(ctx context.Context) (bytes int64, end bool, err error) {
	for !p.o.Dry {
		if p.o.Budget > 0 && time.Since(p.begun) > p.o.Budget {
			return bytes, false, nil
		}
		if err := p.cfg.fault("before " + space); err != nil {
			return bytes, false, err
		}
		began := time.Now()
		given, more, err := p.db.GiveBack(ctx, p.rows(space))
		if err != nil {
			return bytes, false, err
		}
		if bytes += given; !more {
			break
		}
		if err := p.cfg.fault("after " + space); err != nil {
			return bytes, false, err
		}
		took := time.Since(began)
		p.adapt(space, took)
		if err := p.rest(ctx, took); err != nil {
			return bytes, false, err
		}
	}
	return bytes, true, nil
}

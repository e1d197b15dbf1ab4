package api

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/prune"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/terms"
)

// pruneTime is how long a request may prune; there may be more.
const pruneTime = 15 * time.Second

func (a *API) getStorage(ctx context.Context, _ *struct{}) (*output[client.Storage], error) {
	s, err := a.cfg.Pruner.Storage(ctx)
	if err != nil {
		return nil, err
	}
	return &output[client.Storage]{storageOf(s)}, nil
}

func storageOf(s prune.Storage) client.Storage {
	out := client.Storage{
		Database: s.Database, TotalBytes: s.Bytes, FreeBytes: s.Free, BytesPerDay: s.PerDay, FullAt: client.At(s.FullAt),
		Keep: map[string]string{}, Tables: []client.StorageTable{}, Lanes: []client.StorageLane{},
	}
	if s.Room >= 0 {
		out.RoomBytes = &s.Room
	}
	for kind, age := range s.Keep {
		out.Keep[string(kind)] = retention.FormatAge(age)
	}
	for _, t := range s.Tables {
		out.Tables = append(out.Tables, client.StorageTable{Name: t.Name, Rows: t.Rows, Bytes: t.Bytes, BytesPerDay: t.PerDay, Estimated: !t.Exact})
	}
	for _, l := range s.Lanes {
		out.Lanes = append(out.Lanes, client.StorageLane{Kind: string(l.Lane.Kind), Name: l.Name, Rows: l.Rows, Bytes: l.Bytes, Keep: terms.ParseKeep(l.Keep)})
	}
	return out
}

type pruneInput struct {
	OnceHeader
	DryRun bool `query:"dryRun" doc:"Only tell what would be removed."`
	Resume bool `query:"resume" doc:"Go on where an earlier request ran out of time."`
}

type pruneOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Pruned
}

// prune removes what is older than it is kept. It is the same that happens by
// itself every hour, without the rests. It takes many transactions, so that two
// requests with one key at the same time may both be carried out: what is removed is
// removed once.
func (a *API) prune(ctx context.Context, in *pruneInput) (*pruneOutput, error) {
	asked := map[string]bool{"dryRun": in.DryRun, "resume": in.Resume}
	if kept, was, err := answered[client.Pruned](ctx, a, asked); err != nil || was == isReplayed {
		return &pruneOutput{was, kept}, err
	}
	done, err := a.cfg.Pruner.Prune(ctx, prune.Options{Dry: in.DryRun, Anew: !in.Resume, Budget: pruneTime})
	if err != nil {
		return nil, err
	}
	out := client.Pruned{DryRun: in.DryRun, Rows: done.Rows(), Bytes: done.Bytes(), More: done.More, Items: []client.PrunedItem{}}
	for _, r := range done.Removed {
		out.Items = append(out.Items, client.PrunedItem{
			Kind: string(r.Kind), LaneKind: string(r.Lane.Kind), Lane: r.Name, Rows: r.Rows, Bytes: r.Bytes, Oldest: client.At(r.Oldest),
		})
	}
	who := actor(callOf(ctx).token)
	out, was, err := once(ctx, a, http.StatusOK, asked, whole, func(ctx context.Context, tx *store.Tx) (client.Pruned, error) {
		if in.DryRun {
			return out, nil
		}
		return out, tx.Audit(ctx, who, "database.prune", "database", map[string]any{"rows": done.Rows(), "bytes": done.Bytes(), "more": done.More})
	})
	return &pruneOutput{was, out}, err
}

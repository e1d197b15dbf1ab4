package tool

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
)

func TestTestTriesAConnection(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": outbox})
	set, err := Load(dir, Env{Getenv: noEnvironment})
	if err != nil {
		t.Fatal(err)
	}
	if saw, err := set.Test(t.Context(), "outbox"); err != nil || saw != "The folder can be read and written; there are 0 names in it." {
		t.Errorf("Test = %q, %v", saw, err)
	}
	_, err = set.Test(t.Context(), "outbux")
	if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code != pawl.CodeNotFound || e.Hint != "Did you mean outbox?" {
		t.Errorf("Test of what is not there: %v", err)
	}
	plain, err := NewSet(Named{Name: "shop", Type: "shop", Connection: shop{}})
	if err != nil {
		t.Fatal(err)
	}
	if saw, err := plain.Test(t.Context(), "shop"); err != nil || !strings.HasPrefix(saw, "A connection of the type shop cannot be tried") {
		t.Errorf("Test of what cannot be tried = %q, %v", saw, err)
	}
}

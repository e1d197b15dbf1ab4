package script

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	WorkerMain() // the tests' own program is what their pools start
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case rogueWord:
			rogueMain(os.Args[2])
		case probeWord:
			probeMain(os.Args[2])
		}
	}
	goleak.VerifyTestMain(m)
}

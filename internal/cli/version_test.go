package cli

import (
	"runtime/debug"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// U28: a program tells what it was made from, however it was built.
func TestVersionIsTheBestThatIsKnown(t *testing.T) {
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}}
	for name, tt := range map[string]struct {
		version, commit, date string
		info                  debug.BuildInfo
		want                  [3]string
	}{
		"by the Makefile":     {"v1.2", "def", "2026-05-05T05:05:05Z", debug.BuildInfo{Settings: settings}, [3]string{"v1.2", "def", "2026-05-05T05:05:05Z"}},
		"go install":          {"dev", "", "", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, [3]string{"v1.2.3", "unknown", "unknown"}},
		"go install a commit": {"dev", "", "", debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20260102030405-0123456789ab"}}, [3]string{"v0.0.0-20260102030405-0123456789ab", "0123456789ab", "2026-01-02T03:04:05Z"}},
		"after a tag":         {"dev", "", "", debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20260102030405-0123456789ab"}}, [3]string{"v1.2.4-0.20260102030405-0123456789ab", "0123456789ab", "2026-01-02T03:04:05Z"}},
		"no such time":        {"dev", "", "", debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20269902030405-0123456789ab"}}, [3]string{"v0.0.0-20269902030405-0123456789ab", "0123456789ab", "unknown"}},
		"go build":            {"dev", "", "", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: settings}, [3]string{"dev", "abc", "2026-01-02T03:04:05Z"}},
		"with changes":        {"dev", "", "", debug.BuildInfo{Settings: append(settings, debug.BuildSetting{Key: "vcs.modified", Value: "true"})}, [3]string{"dev", "abc (modified)", "2026-01-02T03:04:05Z"}},
		"nothing is known":    {"dev", "", "", debug.BuildInfo{}, [3]string{"dev", "unknown", "unknown"}},
		"linker over install": {"v2", "", "", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, [3]string{"v2", "unknown", "unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := buildFrom(tt.version, tt.commit, tt.date, &tt.info)
			if got := [3]string{b.Version, b.Commit, b.Date}; got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestAddressThatIsNone(t *testing.T) {
	for _, addr := range []string{":99999", "127.0.0.1:-1", ":http", "127.0.0.1"} {
		run(t, "serve", "--addr", addr).expect(t, pawl.ExitUsage, "--addr", "is not a")
	}
}

package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// assetPath is where styles, scripts and pictures are served. They are no
// secret.
const assetPath = "/assets/"

//go:embed assets
var assetFiles embed.FS

// assetVersions are hashes of the content of every asset, by its name: an
// address with a version can be kept for ever.
func assetVersions() (map[string]string, error) {
	out := map[string]string{}
	err := fs.WalkDir(assetFiles, "assets", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := assetFiles.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		out[strings.TrimPrefix(name, "assets/")] = hex.EncodeToString(sum[:6])
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	return out, nil
}

// assetAddress is the address of an asset with its version.
func assetAddress(versions map[string]string, name string) (string, error) {
	version, ok := versions[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %s", name)
	}
	return assetPath + name + "?v=" + version, nil
}

func (s *Site) serveAsset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, assetPath)
	content, err := assetFiles.ReadFile(path.Join("assets", name))
	kind := assetType(name)
	if err != nil || kind == "" || !fs.ValidPath(name) {
		s.fail(w, r, http.StatusNotFound, notice{Text: "There is nothing at " + r.URL.Path + "."})
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") != "" {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// assetType does not ask the machine, whose tables differ.
func assetType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return ""
}

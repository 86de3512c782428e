package imagestore

import (
	"runtime"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// hostPlatform is what this machine runs, as containerd itself would choose.
func hostPlatform() ocispec.Platform {
	p := ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}
	if p.Architecture == "arm64" {
		p.Variant = "v8"
	}
	return p
}

// runs says whether an image for p runs on host. The variants amd64/v1 and
// arm64/v8 are what the architecture alone means.
func runs(host, p ocispec.Platform) bool {
	return p.OS == host.OS && p.Architecture == host.Architecture && normalVariant(p) == normalVariant(host)
}

func normalVariant(p ocispec.Platform) string {
	switch p.Architecture + "/" + p.Variant {
	case "amd64/v1", "arm64/v8", "arm64/8":
		return ""
	}
	return p.Variant
}

func platformText(p ocispec.Platform) string {
	text := p.OS + "/" + p.Architecture
	if v := normalVariant(p); v != "" {
		text += "/" + v
	}
	return text
}

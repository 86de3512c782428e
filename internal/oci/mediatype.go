package oci

import (
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Docker's names for what OCI took over.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerConfig   = "application/vnd.docker.container.image.v1+json"
)

// IsIndex says whether a media type is that of an index, by OCI's name or Docker's.
func IsIndex(mediaType string) bool {
	return mediaType == v1.MediaTypeImageIndex || mediaType == dockerList
}

// IsManifest says whether a media type is that of a manifest.
func IsManifest(mediaType string) bool {
	return mediaType == v1.MediaTypeImageManifest || mediaType == dockerManifest
}

// IsConfig says whether a media type is that of an image's configuration.
func IsConfig(mediaType string) bool {
	return mediaType == v1.MediaTypeImageConfig || mediaType == dockerConfig
}

// Accepted are the media types of all manifests and indexes that ParseManifest
// reads, as a registry is asked for them.
var Accepted = strings.Join([]string{v1.MediaTypeImageIndex, v1.MediaTypeImageManifest, dockerList, dockerManifest}, ", ")

// isKnown says whether a media type is that of a manifest or an index.
func isKnown(mediaType string) bool { return IsIndex(mediaType) || IsManifest(mediaType) }

// Package azurecluster is the file that keeps what Azure said of an AKS cluster, so
// that a node of it asks no more.
package azurecluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/paths"
)

// Path is where the file is.
const Path = paths.SettingsDir + "/azure-cluster.json"

// Cluster is how an AKS cluster is reached.
type Cluster struct {
	// ResourceID is the cluster's in Azure, in lower case.
	ResourceID string `json:"resourceId"`
	// Server is the URL of its API server, CA its certificates, PEM.
	Server string `json:"server"`
	CA     string `json:"ca"`
}

// Marshal is the text of the file.
func Marshal(c Cluster) ([]byte, error) {
	c.ResourceID = strings.ToLower(c.ResourceID)
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write cluster: %w", err)
	}
	return append(b, '\n'), nil
}

// Parse reads the text of the file.
func Parse(text []byte) (Cluster, error) {
	var c Cluster
	if err := json.Unmarshal(text, &c); err != nil {
		return Cluster{}, err
	}
	if c.ResourceID == "" || c.Server == "" || c.CA == "" {
		return Cluster{}, errors.New("something is missing")
	}
	return c, nil
}

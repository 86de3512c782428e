package apiserver

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/version"
)

// ServerVersion is what the API server says of itself, "v1.36.3". Most tell anybody.
func (c *Client) ServerVersion(ctx context.Context) (string, error) {
	var text []byte
	err := c.short(ctx, func(ctx context.Context) (err error) {
		text, err = c.core.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("ask for the version: %w", err)
	}
	var v version.Info
	if err := json.Unmarshal(text, &v); err != nil {
		return "", fmt.Errorf("read the version: %w", err)
	}
	return v.GitVersion, nil
}

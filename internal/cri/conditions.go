package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Condition is what the runtime says of a part of itself.
type Condition struct {
	// Type is RuntimeReady, NetworkReady or one of the runtime's own.
	Type string
	OK   bool
	// Reason and Message say why not.
	Reason, Message string
}

// Conditions asks the runtime how it is, as kubelet does.
func (c *Client) Conditions(ctx context.Context) ([]Condition, error) {
	r, err := c.api.Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask the container runtime how it is: %w", err)
	}
	var all []Condition
	for _, one := range r.GetStatus().GetConditions() {
		all = append(all, Condition{one.Type, one.Status, one.Reason, one.Message})
	}
	return all, nil
}

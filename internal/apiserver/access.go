package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
)

// Right is what somebody may want to do in a cluster.
type Right struct {
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
}

// String is as kubectl auth can-i takes it.
func (r Right) String() string {
	s := r.Verb + " " + r.Resource
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Subresource != "" {
		s += "/" + r.Subresource
	}
	return s
}

// The objects of authorization.k8s.io/v1 that are sent and read; its Go types would
// come with code at each start of the program.
type accessReview struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Spec       accessSpec   `json:"spec"`
	Status     accessStatus `json:"status,omitzero"`
}

type accessSpec struct {
	Attributes Right `json:"resourceAttributes"`
}

type accessStatus struct {
	Allowed         bool   `json:"allowed"`
	Reason          string `json:"reason,omitempty"`
	EvaluationError string `json:"evaluationError,omitempty"`
}

// May asks the API server whether the client has a right (SelfSubjectAccessReview).
// Nothing comes of it in the cluster. The reason is the server's, if it says one.
// Errors are *Error; a credential that nobody knows is found by Unknown.
func (c *Client) May(ctx context.Context, r Right) (allowed bool, reason string, err error) {
	body, err := json.Marshal(accessReview{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview", Spec: accessSpec{r}})
	if err != nil {
		return false, "", fmt.Errorf("ask for a right: %w", err)
	}
	var answer []byte
	err = c.short(ctx, func(ctx context.Context) (err error) {
		answer, err = c.core.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
			SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(body).MaxRetries(0).DoRaw(ctx)
		return err
	})
	if err != nil {
		return false, "", err
	}
	var said accessReview
	if err := json.Unmarshal(answer, &said); err != nil {
		return false, "", fmt.Errorf("read the answer to %s: %w", r, err)
	}
	if said.Status.Reason == "" {
		said.Status.Reason = said.Status.EvaluationError
	}
	return said.Status.Allowed, said.Status.Reason, nil
}

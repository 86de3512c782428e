package apiserver

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestUnknown: who shows no certificate that the server asks for is nobody to it.
func TestUnknown(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	for want, errs := range map[bool][]error{
		true: {apierrors.NewUnauthorized("x"),
			fmt.Errorf("get: %w", apierrors.NewForbidden(nodes, "n", errors.New(`User "system:anonymous" cannot list resource "nodes"`)))},
		false: {nil, errors.New(`User "system:anonymous"`), apierrors.NewNotFound(nodes, "n"),
			apierrors.NewForbidden(nodes, "n", errors.New(`User "gardener.cloud:node-agent:machine:m" cannot list resource "nodes"`))},
	} {
		for _, err := range errs {
			if Unknown(err) != want {
				t.Errorf("%v: want %v", err, want)
			}
		}
	}
}

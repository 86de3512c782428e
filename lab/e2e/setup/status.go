package setup

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// Extension is what the CustomScript extension reports.
type Extension struct {
	Message string
	Code    int
	Err     error
}

// CheckStatus proves a success that is told completely.
func CheckStatus(t *testing.T, r Extension) {
	t.Helper()
	if r.Err != nil || r.Code != 0 {
		t.Fatalf("extension: %v, exit code %d\n%s", r.Err, r.Code, r.Message)
	}
	status, err := nodeconfigutils.ParseCSEStatus(r.Message)
	if err != nil {
		t.Fatalf("parse: %v\n%s", err, r.Message)
	}
	if status.ExitCode != "0" || status.Error != "" {
		t.Errorf("exit code %q, error %q", status.ExitCode, status.Error)
	}
	points := reflect.ValueOf(status.BootDatapoints)
	for i := range points.NumField() {
		if points.Field(i).String() == "" {
			t.Errorf("BootDatapoints.%s is empty", points.Type().Field(i).Name)
		}
	}
	if t.Failed() {
		t.Logf("message:\n%s", r.Message)
	}
}

// Ready says whether a Node is.
func Ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

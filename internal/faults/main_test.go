package faults_test

import (
	"testing"

	"github.com/berth-dev/berth/internal/host/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

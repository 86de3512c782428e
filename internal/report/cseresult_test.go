package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func full(n int) Result {
	var d Result
	d.ExitCode, d.Error, d.Output, d.SystemdSummary = "51", strings.Repeat("error ", n), strings.Repeat("\"é\n", n), strings.Repeat("s", n)
	d.Berth = &Details{InstanceID: "vm-1", Code: "ERR_X", Hint: strings.Repeat("hint ", n/4), Doing: strings.Repeat("doing", n), Field: strings.Repeat("a.b,", n)}
	for i := range n {
		d.Berth.Unhandled = append(d.Berth.Unhandled, fmt.Sprintf("some_config.some_field_%d", i))
		d.Berth.Unverified = append(d.Berth.Unverified, fmt.Sprintf("artifact-%d", i))
	}
	return d
}

func TestEncodeFits(t *testing.T) {
	for _, n := range []int{0, 10, 100, 300, 1000, 5000, 100_000} {
		d := full(n)
		b, err := Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > Limit || b[len(b)-1] != '\n' || !utf8.Valid(b) {
			t.Errorf("n=%d: %d bytes", n, len(b))
		}
		got, err := Decode(b)
		if err != nil || got.ExitCode != "51" || got.Berth.Code != "ERR_X" || got.Berth.InstanceID != "vm-1" {
			t.Errorf("n=%d: %s, %v", n, b, err)
		}
		if len(d.Berth.Unhandled) != n {
			t.Errorf("n=%d: the result itself was cut", n)
		}
	}
}

// TestEncodeUsesTheRoom: of a long log as much is kept as fits.
func TestEncodeUsesTheRoom(t *testing.T) {
	d := Result{}
	d.ExitCode, d.Output = "0", strings.Repeat("a line of the log\n", 1000)+"the end"
	b, err := Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := Decode(b)
	if len(b) < Limit-200 || !strings.HasSuffix(got.Output, "the end") {
		t.Errorf("%d bytes, output ends with %q", len(b), got.Output[len(got.Output)-20:])
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("output", "error", 3)
	f.Add(strings.Repeat("\x00\xff", 4000), "\u2028", 2000)
	f.Fuzz(func(t *testing.T, output, failure string, n int) {
		d := full(max(0, n%2000))
		d.Output, d.Error = output, failure
		b, err := Encode(d)
		if err != nil || len(b) > Limit || !json.Valid(b) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"ExitCode":"0","Berth":{"Unhandled":["a"]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Decode(b)
		if err != nil {
			return
		}
		if out, err := Encode(d); err != nil || len(out) > Limit {
			t.Errorf("%d bytes, %v", len(out), err)
		}
	})
}

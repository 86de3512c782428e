package azurecluster

import "testing"

func TestRoundTrip(t *testing.T) {
	text, err := Marshal(Cluster{"/Subscriptions/X", "https://a:443", "PEM"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(text)
	if want := (Cluster{"/subscriptions/x", "https://a:443", "PEM"}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "[]", `{"resourceId":"a","server":"b"}`} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"resourceId":"a","server":"b","ca":"c"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := Parse(text); err == nil && (c.Server == "" || c.CA == "") {
			t.Errorf("%+v", c)
		}
	})
}

package bundle

import "testing"

func TestCompleteReference(t *testing.T) {
	pin := "@sha256:" + sum(nil)
	for text, want := range map[string]string{
		"pause": "docker.io/library/pause:latest", "a/b:1": "docker.io/a/b:1", "docker.io/pause:1": "docker.io/library/pause:1",
		"localhost/x": "localhost/x:latest", "r.example:5000/a/b": "r.example:5000/a/b:latest", "r.example/a:1" + pin: "r.example/a:1" + pin,
		"r.example/a" + pin: "r.example/a" + pin, "mcr.microsoft.com/oss/kubernetes/pause:3.6": "mcr.microsoft.com/oss/kubernetes/pause:3.6",
		"": "", "A": "", "r.example/a:": "", "r.example/../b": "", "r.example/a@sha256:00": "", "a b": "", "r.example//a": "",
	} {
		if got, err := CompleteReference(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzCompleteReference(f *testing.F) {
	f.Add("pause")
	f.Add("docker.io/x:1")
	f.Fuzz(func(t *testing.T, text string) {
		once, err := CompleteReference(text)
		if err != nil {
			return
		}
		if twice, err := CompleteReference(once); err != nil || twice != once {
			t.Errorf("%q: %q, then %q, %v", text, once, twice, err)
		}
	})
}

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"github.com/berth-dev/berth/internal/oci"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

var payload = bytes.Repeat([]byte("0123456789abcdef"), 20_000)

func TestBlobContinues(t *testing.T) {
	for _, noRange := range []bool{false, true} {
		r := newRegistry(t)
		r.noRange = noRange
		l := r.addBlob("", "", payload)
		for _, offset := range []int64{0, 1, 100_000, l.Size - 1, l.Size} {
			in, start, err := r.client().Blob(t.Context(), r.ref(":v1"), l, offset)
			if err != nil {
				t.Fatal(err)
			}
			want := offset
			if noRange && offset < l.Size {
				want = 0
			}
			got, err := io.ReadAll(in)
			if err != nil || start != want || !bytes.Equal(got, payload[start:]) {
				t.Errorf("no range %t, from %d: from %d %d bytes, %v", noRange, offset, start, len(got), err)
			}
			in.Close()
		}
		for _, offset := range []int64{-1, l.Size + 1} {
			if _, _, err := r.client().Blob(t.Context(), r.ref(":v1"), l, offset); err == nil {
				t.Errorf("from %d: no error", offset)
			}
		}
	}
}

// TestBlobCut cuts an answer in each way that HTTP knows, and goes on.
func TestBlobCut(t *testing.T) {
	cuts := map[string]func(http.ResponseWriter){
		"declared length": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", fmt.Sprint(len(payload)))
			_, _ = w.Write(payload[:70_000])
		},
		"chunked, with its end": func(w http.ResponseWriter) {
			_, _ = w.Write(payload[:70_000])
			_ = http.NewResponseController(w).Flush()
		},
		"connection reset": func(w http.ResponseWriter) {
			_, _ = w.Write(payload[:70_000])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	}
	for name, cut := range cuts {
		r := newRegistry(t)
		l := r.addBlob("", "", payload)
		r.answer = func(w http.ResponseWriter, req *http.Request) bool {
			if req.Header.Get("Range") == "" {
				cut(w)
			}
			return req.Header.Get("Range") == ""
		}
		client := r.client()
		in, _, err := client.Blob(t.Context(), r.ref(":v1"), l, 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := io.ReadAll(in)
		in.Close()
		if e, ok := errors.AsType[*RequestError](err); !ok || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v (%v)", name, err, e)
		}
		rest, _, err := client.Blob(t.Context(), r.ref(":v1"), l, int64(len(got)))
		if err != nil {
			t.Fatalf("%s: go on: %v", name, err)
		}
		more, err := io.ReadAll(rest)
		rest.Close()
		if err != nil || !bytes.Equal(append(got, more...), payload) {
			t.Errorf("%s: %d and %d bytes, %v", name, len(got), len(more), err)
		}
	}
}

func TestBlobRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		offset int64
		answer func(http.ResponseWriter)
		want   any
	}{
		"other length": {0, func(w http.ResponseWriter) { _, _ = w.Write([]byte("short")) }, new(*oci.SizeError)},
		"too long": {0, func(w http.ResponseWriter) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(append(payload[:len(payload):len(payload)], '!'))
		}, new(*oci.SizeError)},
		"other digest": {0, func(w http.ResponseWriter) {
			w.Header().Set(digestHeader, someDigest.String())
			_, _ = w.Write(payload)
		}, new(*oci.DigestError)},
		"other range": {100, func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 0-99/320000")
			w.WriteHeader(http.StatusPartialContent)
		}, new(*RequestError)},
		"no content": {0, func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }, new(*StatusError)},
	} {
		r := newRegistry(t)
		r.answer = func(w http.ResponseWriter, _ *http.Request) bool { c.answer(w); return true }
		in, _, err := r.client().Blob(t.Context(), r.ref(":v1"), r.addBlob("", "", payload), c.offset)
		if err == nil {
			_, err = io.ReadAll(in)
			in.Close()
		}
		if !errors.As(err, c.want) {
			t.Errorf("%s: %T %v", name, err, err)
		}
	}
}

// TestBlobGivenUp has a cause that must be what is reported.
func TestBlobGivenUp(t *testing.T) {
	r := newRegistry(t)
	l := r.addBlob("", "", payload)
	stop, stopped := make(chan struct{}), errors.New("no data for 30s")
	t.Cleanup(func() { close(stop) })
	r.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = w.Write(payload[:1000])
		_ = http.NewResponseController(w).Flush()
		<-stop
		return true
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	in, _, err := r.client().Blob(ctx, r.ref(":v1"), l, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := io.ReadFull(in, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	cancel(stopped)
	if got, err := io.ReadAll(in); len(got) != 0 || !errors.Is(err, stopped) {
		t.Errorf("%d more bytes, %v", len(got), err)
	}
}

// TestBlobElsewhere is a registry that keeps its blobs in a store under signed
// URLs: the store gets no token, errors show no signature.
func TestBlobElsewhere(t *testing.T) {
	var seen http.Header
	status := http.StatusOK
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen = req.Header.Clone()
		w.WriteHeader(status)
		_, _ = w.Write(payload)
	}))
	defer store.Close()
	r := newRegistry(t)
	l := r.addBlob("", "", payload)
	r.auth = "token"
	r.answer = func(w http.ResponseWriter, req *http.Request) bool {
		if req.Header.Get("Authorization") == "" || req.URL.Path == "/token" {
			return false
		}
		http.Redirect(w, req, store.URL+"/x?sig=hunter2", http.StatusTemporaryRedirect)
		return true
	}
	in, _, err := r.client().Blob(t.Context(), r.ref(":v1"), l, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(in)
	if err != nil || !bytes.Equal(got, payload) || seen.Get("Authorization") != "" || seen.Get("Referer") != "" {
		t.Errorf("%d bytes, %v, the store saw %v", len(got), err, seen)
	}
	status = http.StatusForbidden
	_, _, err = r.client().Blob(t.Context(), r.ref(":v1"), l, 0)
	if e, ok := errors.AsType[*StatusError](err); !ok || e.Status != 403 || "http://"+e.Host != store.URL || leaks(err) {
		t.Errorf("error is %v", err)
	}
	store.Close()
	if _, _, err = r.client().Blob(t.Context(), r.ref(":v1"), l, 0); err == nil || leaks(err) {
		t.Errorf("error is %v", err)
	}
	// A manifest by tag has nothing to be compared with.
	if _, err = r.client().Resolve(t.Context(), r.ref(":v1")); err == nil || leaks(err) {
		t.Errorf("error is %v", err)
	}
}

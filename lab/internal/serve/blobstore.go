package serve

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// BlobStore serves a registry's blobs, ranges included, to whoever comes with a
// signed address. One who also brings a credential is refused: that is how
// Azure's blob store takes a second credential, and how a token that follows a
// redirect is found out.
type BlobStore struct {
	RequestLog
	host    string
	held    *Registry
	secret  []byte
	handler http.Handler
}

const (
	signatureLifetime = 20 * time.Minute
	storePath         = "/registry/blobs/sha256/"
)

func newBlobStore(host string, held *Registry) *BlobStore {
	b := &BlobStore{host: host, held: held, secret: make([]byte, 32)}
	rand.Read(b.secret)
	b.handler = b.watch(http.HandlerFunc(b.serve))
	return b
}

// PathOf is where a blob ("sha256:…") is served.
func (b *BlobStore) PathOf(digest string) string {
	return storePath + strings.TrimPrefix(digest, "sha256:")
}

// signed is the address of a blob until a time.
func (b *BlobStore) signed(h v1.Hash, until time.Time) string {
	path, end := b.PathOf(h.String()), until.UTC().Format(time.RFC3339)
	query := url.Values{"se": {end}, "sp": {"r"}, "spr": {"https"}, "sr": {"b"}, "sig": {b.signature(path, end)}}
	return "https://" + b.host + path + "?" + query.Encode()
}

func (b *BlobStore) signature(path, end string) string {
	mac := hmac.New(sha256.New, b.secret)
	fmt.Fprint(mac, path, "\n", end)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (b *BlobStore) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.handler.ServeHTTP(w, r) }

func (b *BlobStore) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	end, err := time.Parse(time.RFC3339, query.Get("se"))
	switch {
	case r.Header.Get("Authorization") != "":
		storeError(w, http.StatusBadRequest, "InvalidAuthenticationInfo", "Authentication information is not given in the correct format.")
		return
	case err != nil, time.Now().After(end), !hmac.Equal([]byte(query.Get("sig")), []byte(b.signature(r.URL.Path, query.Get("se")))):
		storeError(w, http.StatusForbidden, "AuthenticationFailed", "Server failed to authenticate the request.")
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		storeError(w, http.StatusForbidden, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation.")
		return
	}
	body, err := b.open(r)
	if err != nil {
		storeError(w, http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", `"`+strings.TrimPrefix(r.URL.Path, storePath)+`"`)
	http.ServeContent(w, r, "", time.Time{}, body)
}

func (b *BlobStore) open(r *http.Request) (io.ReadSeeker, error) {
	h, err := v1.NewHash("sha256:" + strings.TrimPrefix(r.URL.Path, storePath))
	if err != nil {
		return nil, err
	}
	body, err := b.held.blobs.Get(r.Context(), "", h)
	if err != nil {
		return nil, err
	}
	return body.(io.ReadSeeker), nil // it is in memory
}

func storeError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code, message)
}

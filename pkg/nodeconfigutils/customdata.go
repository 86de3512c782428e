package nodeconfigutils

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime/multipart"
	"net/textproto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// CustomData is for machines with cloud-init: base64 of a MIME document with a boothook, which writes
// the configuration and starts provisioning as early as cloud-init runs anything, and a cloud-config,
// which starts it at the end where the early start failed. It does not validate.
//
// The configuration never exists on disk with a mode wider than 0600.
func CustomData(cfg *aksnodeconfigv1.Configuration) (string, error) {
	hook, err := boothook(cfg)
	if err != nil {
		return "", err
	}
	starter, err := cloudConfig{RunCmd: startCommand()}.marshal()
	if err != nil {
		return "", err
	}
	document, err := mime(part{"text/cloud-boothook", hook}, part{"text/cloud-config", starter})
	if err != nil {
		return "", err
	}
	return encode(document)
}

type part struct {
	contentType string
	content     []byte
}

// mime joins the parts. The boundary comes from the content, so the document is always the same.
func mime(parts ...part) ([]byte, error) {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%s %d\n%s", p.contentType, len(p.content), p.content)
	}
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.SetBoundary("berth-" + hex.EncodeToString(sum.Sum(nil)[:16])); err != nil {
		return nil, err
	}
	for _, p := range parts {
		if err := writePart(w, p); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	head := fmt.Sprintf("MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=%q\r\n\r\n", w.Boundary())
	return append([]byte(head), body.Bytes()...), nil
}

func writePart(w *multipart.Writer, p part) error {
	out, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Type":              {p.contentType + `; charset="utf-8"`},
		"Content-Transfer-Encoding": {"7bit"},
		"Mime-Version":              {"1.0"},
	})
	if err != nil {
		return err
	}
	_, err = out.Write(p.content)
	return err
}

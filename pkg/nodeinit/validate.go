package nodeinit

import (
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	distribution "github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

const (
	configVersion = "nodeagent.config.gardener.cloud/v1alpha1"
	configKind    = "NodeAgentConfiguration"
)

var (
	tokenForm = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	// versionForm is what can stand in the name of a file.
	versionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)
	// pathForm is what needs no quotes in a unit.
	pathForm = regexp.MustCompile(`^/[A-Za-z0-9._/+@-]+$`)
	// urlForm leaves out blanks and what quotes for systemd.
	urlForm = regexp.MustCompile("^[!-~]+$")
)

// Validate finds everything for which a machine could not start its agent. Paths are the fields' names,
// spelled with a small letter at the beginning; secrets are not repeated.
func (d Data) Validate() field.ErrorList {
	var all field.ErrorList
	if err := validCA(d.ClusterCA); err != nil {
		all = append(all, field.Invalid(field.NewPath("clusterCA"), field.OmitValueType{}, err.Error()))
	}
	if d.BootstrapToken != BootstrapTokenPlaceholder && !tokenForm.MatchString(d.BootstrapToken) {
		all = append(all, field.Invalid(field.NewPath("bootstrapToken"), field.OmitValueType{},
			"must be 6 and 16 small letters and digits with a dot between them, or "+BootstrapTokenPlaceholder))
	}
	all = append(all, validMachine(field.NewPath("machineName"), d.MachineName)...)
	if !versionForm.MatchString(d.Version) {
		all = append(all, field.Invalid(field.NewPath("version"), d.Version, "must be letters, digits, dots, plus and minus signs, as in v1.2.3"))
	}
	if err := validConfiguration(d.Configuration); err != nil {
		all = append(all, field.Invalid(field.NewPath("configuration"), field.OmitValueType{}, err.Error()))
	}
	return append(all, d.Binary.validate(field.NewPath("binary"))...)
}

func validMachine(at *field.Path, name string) field.ErrorList {
	if name == MachineNamePlaceholder {
		return nil
	}
	var all field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(name) {
		all = append(all, field.Invalid(at, name, problem))
	}
	return all
}

func validCA(text []byte) error {
	found := 0
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("holds a %s, must hold certificates alone", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d: %w", found+1, err)
		}
		found, text = found+1, rest
	}
	if found == 0 {
		return errors.New("holds no certificate in PEM form")
	}
	return nil
}

func validConfiguration(text []byte) error {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("is not YAML: %w", err)
	}
	if head.APIVersion != configVersion || head.Kind != configKind {
		return fmt.Errorf("is %q of %q, must be %s of %s", head.Kind, head.APIVersion, configKind, configVersion)
	}
	return nil
}

func (b Binary) validate(at *field.Path) field.ErrorList {
	var all field.ErrorList
	ways := 0
	for _, way := range []struct {
		set, other bool
		check      func(*field.Path) field.ErrorList
	}{
		{b.Path != "", false, b.validPath},
		{b.URL != "", b.SHA256 != "", b.validURL},
		{b.Image != "", b.PathInImage != "", b.validImage},
	} {
		if way.set || way.other {
			ways++
			all = append(all, way.check(at)...)
		}
	}
	if ways != 1 {
		all = append(all, field.Invalid(at, field.OmitValueType{}, "must have one of path, url with sha256, image with pathInImage"))
	}
	return all
}

func (b Binary) validPath(at *field.Path) field.ErrorList {
	return cleanPath(at.Child("path"), b.Path)
}

func cleanPath(at *field.Path, p string) field.ErrorList {
	if !pathForm.MatchString(p) || path.Clean(p) != p {
		return field.ErrorList{field.Invalid(at, p, "must be an absolute path of letters, digits and ._+@-, without . and ..")}
	}
	return nil
}

func (b Binary) validURL(at *field.Path) field.ErrorList {
	var all field.ErrorList
	if err := plainURL(b.URL); err != nil {
		all = append(all, field.Invalid(at.Child("url"), field.OmitValueType{}, err.Error()))
	}
	if sum, err := hex.DecodeString(b.SHA256); err != nil || len(sum) != 32 {
		all = append(all, field.Invalid(at.Child("sha256"), b.SHA256, "must be 64 hexadecimal digits"))
	}
	return all
}

// plainURL refuses what another reader of the unit could take apart differently, and a password: it would
// stand in the list of processes.
func plainURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return errors.New("must begin with https://host or http://host")
	case u.User != nil:
		return errors.New("must hold no user and no password")
	case u.Fragment != "":
		return errors.New("must have no fragment; the digest is in sha256")
	case !urlForm.MatchString(text) || strings.ContainsAny(text, "\"'\\`"):
		return errors.New("must be percent-encoded where it holds quotes, backslashes, blanks or anything but ASCII")
	}
	return nil
}

func (b Binary) validImage(at *field.Path) field.ErrorList {
	var all field.ErrorList
	if _, err := reference(b.Image); err != nil {
		all = append(all, field.Invalid(at.Child("image"), b.Image, err.Error()))
	}
	return append(all, cleanPath(at.Child("pathInImage"), b.PathInImage)...)
}

// reference is the whole name of an image: ctr completes none.
func reference(image string) (string, error) {
	named, err := distribution.ParseNormalizedNamed(image)
	if err != nil {
		return "", err
	}
	return distribution.TagNameOnly(named).String(), nil
}

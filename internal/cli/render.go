package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/yamltext"
)

// rendered is what render prints. Its keys are part of the interface.
type rendered struct {
	State     *desired.State      `json:"state"`
	Unused    []desired.FieldNote `json:"unused"`
	Unhandled []string            `json:"unhandled"`
}

func (e *env) render() *cobra.Command {
	var f documentFlags
	c := &cobra.Command{
		Use: "render -f FILE", Short: "Print the machine state that a document asks for", Args: e.noArgs,
		Long: "Print the machine state that a document asks for, the fields of it that have no effect, with the reason, and those\n" +
			"that this version does not act on. Secrets are redacted. Nothing is changed.",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf(f.output, "json", "yaml"); err != nil {
				return e.usage(c, err)
			}
			if err := f.complete(); err != nil {
				return e.usage(c, err)
			}
			d, err := e.load(c.Context(), f)
			if err != nil {
				return err
			}
			return encode(e.out, f.output, rendered{d.state, d.unused(), nonNil(d.state.Unhandled)})
		},
	}
	f.bind(c, "json", "print as `FORMAT`: json or yaml")
	return c
}

func encode(w io.Writer, format string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if format == "yaml" {
		if b, err = yamltext.FromJSON(b); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		_, err = w.Write(b)
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func oneOf(output string, allowed ...string) error {
	for _, a := range allowed {
		if output == a {
			return nil
		}
	}
	last := len(allowed) - 1
	return fmt.Errorf("-o %s: must be %s or %s", output, strings.Join(allowed[:last], ", "), allowed[last])
}

func nonNil[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/provision"
)

// nodePasswordAge is what adminuser.Unit calls.
func (e *env) nodePasswordAge() *cobra.Command {
	back := false
	c := &cobra.Command{
		Use: "password-age USER…", Short: "Let passwords last that would expire", Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			h, err := e.open("/")
			if err != nil {
				return err
			}
			if !back {
				return provision.LetPasswordsLast(c.Context(), h, args)
			}
			left, err := provision.GivePasswordAgesBack(c.Context(), h)
			for _, user := range left {
				fmt.Fprintf(e.err, "somebody else has changed when the password of %s expires, and that stays\n", user)
			}
			return err
		},
	}
	c.Flags().BoolVar(&back, "back", false, "give back what was there before")
	return c
}

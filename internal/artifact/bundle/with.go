package bundle

import "fmt"

// With does something with the bundle in a file, which is a regular one; errors name the file.
func With(name string, do func(*Bundle) error) error {
	f, size, err := OpenRegular(name)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := Open(f, size)
	if err == nil {
		err = do(b)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

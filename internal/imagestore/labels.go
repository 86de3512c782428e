package imagestore

import (
	"context"
	"maps"
	"slices"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// relabel gives a blob that was there already the labels that it lacks. Labels of
// others stay.
func (u *upload) relabel(ctx context.Context) error {
	if len(u.labels) == 0 {
		return nil
	}
	digest := u.Digest.String()
	info, err := u.content.Info(ctx, &contentapi.InfoRequest{Digest: digest})
	if err != nil {
		return err
	}
	missing := missingLabels(info.Info.Labels, u.labels)
	if len(missing) == 0 {
		return nil
	}
	_, err = u.content.Update(ctx, &contentapi.UpdateRequest{
		Info:       &contentapi.Info{Digest: digest, Labels: missing},
		UpdateMask: labelMask(missing),
	})
	return err
}

// missingLabels are those of want that have does not hold.
func missingLabels(have, want map[string]string) map[string]string {
	missing := map[string]string{}
	for k, v := range want {
		if have[k] != v {
			missing[k] = v
		}
	}
	return missing
}

func labelMask(labels map[string]string, more ...string) *fieldmaskpb.FieldMask {
	paths := slices.Clone(more)
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		paths = append(paths, "labels."+k)
	}
	return &fieldmaskpb.FieldMask{Paths: paths}
}

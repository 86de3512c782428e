package imagestore

import (
	"context"
	"fmt"
	"maps"
	"strings"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	leasesapi "github.com/containerd/containerd/api/services/leases/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// imageService is the fake's images: two services have methods of one name.
type imageService struct {
	*fake
	imagesapi.UnimplementedImagesServer
}

func (f imageService) Get(_ context.Context, r *imagesapi.GetImageRequest) (*imagesapi.GetImageResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if img := f.records[r.Name]; img != nil {
		return &imagesapi.GetImageResponse{Image: img}, nil
	}
	return nil, status.Errorf(codes.NotFound, "image %q: not found", r.Name)
}

func (f imageService) List(_ context.Context, r *imagesapi.ListImagesRequest) (*imagesapi.ListImagesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &imagesapi.ListImagesResponse{}
	for _, img := range f.records {
		if "target.digest=="+img.Target.Digest == r.Filters[0] {
			out.Images = append(out.Images, img)
		}
	}
	return out, nil
}

func (f imageService) Create(_ context.Context, r *imagesapi.CreateImageRequest) (*imagesapi.CreateImageResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.records[r.Image.Name] != nil {
		return nil, status.Errorf(codes.AlreadyExists, "image %q: already exists", r.Image.Name)
	}
	f.records[r.Image.Name] = r.Image
	return &imagesapi.CreateImageResponse{Image: r.Image}, nil
}

func (f imageService) Update(_ context.Context, r *imagesapi.UpdateImageRequest) (*imagesapi.UpdateImageResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.records[r.Image.Name]
	img := &imagesapi.Image{Name: old.Name, Labels: maps.Clone(old.Labels), Target: old.Target}
	for _, p := range r.UpdateMask.Paths {
		if p == "target" {
			img.Target = r.Image.Target
			continue
		}
		key := strings.TrimPrefix(p, "labels.")
		img.Labels[key] = r.Image.Labels[key]
	}
	f.records[img.Name] = img
	return &imagesapi.UpdateImageResponse{Image: img}, nil
}

func (f imageService) Delete(_ context.Context, r *imagesapi.DeleteImageRequest) (*emptypb.Empty, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.records[r.Name] == nil {
		return nil, status.Errorf(codes.NotFound, "image %q: not found", r.Name)
	}
	delete(f.records, r.Name)
	if r.Sync {
		f.collect()
	}
	return &emptypb.Empty{}, nil
}

// collect is the garbage collection: images and leases hold blobs, and blobs
// those that their labels name.
func (f *fake) collect() {
	live := map[string]bool{}
	var mark func(string)
	mark = func(digest string) {
		b := f.blobs[digest]
		if b == nil || live[digest] {
			return
		}
		live[digest] = true
		for k, v := range b.labels {
			if strings.HasPrefix(k, gcContent) {
				mark(v)
			}
		}
	}
	for _, img := range f.records {
		mark(img.Target.Digest)
	}
	for _, l := range f.held {
		for d := range l.blobs {
			mark(d)
		}
	}
	maps.DeleteFunc(f.blobs, func(d string, _ *stored) bool { return !live[d] })
}

// leaseService is the fake's leases.
type leaseService struct {
	*fake
	leasesapi.UnimplementedLeasesServer
}

func (f leaseService) Create(_ context.Context, r *leasesapi.CreateRequest) (*leasesapi.CreateResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &leasesapi.Lease{ID: r.ID, Labels: r.Labels}
	f.held[r.ID] = &heldLease{l, map[string]bool{}, map[string]bool{}}
	return &leasesapi.CreateResponse{Lease: l}, nil
}

func (f leaseService) List(_ context.Context, r *leasesapi.ListRequest) (*leasesapi.ListResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &leasesapi.ListResponse{}
	for _, l := range f.held {
		if fmt.Sprintf("labels.%q==%q", importLabel, l.Labels[importLabel]) == r.Filters[0] {
			out.Leases = append(out.Leases, l.Lease)
		}
	}
	return out, nil
}

// Delete also ends the uploads that only this lease held.
func (f leaseService) Delete(_ context.Context, r *leasesapi.DeleteRequest) (*emptypb.Empty, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.held[r.ID]
	if l == nil {
		return nil, status.Errorf(codes.NotFound, "lease %q: not found", r.ID)
	}
	delete(f.held, r.ID)
	for ref := range l.ingests {
		delete(f.ingests, ref)
	}
	f.collect()
	return &emptypb.Empty{}, nil
}

package host

// ProvenanceName is the extended attribute that holds the sha256, in 32 bytes, of what
// berth wrote into a file: a file that somebody edited afterwards does not agree with it.
// With a small value ext4 has room for it in the inode.
//
// It tells no secret: the digest of a token that can be guessed is as good as the token,
// but the kernel shows attributes of this namespace to nobody without CAP_SYS_ADMIN
// (xattr(7)), and who has that reads the file itself.
const ProvenanceName = "trusted.berth"

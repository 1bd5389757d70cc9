/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hangfs FILE... DIRECTORY: a file system whose server can be stopped, as that of a network mount
 * is when its machine is gone. DIRECTORY shows the FILEs by their last names, read only and never
 * cached. A line "hang" on standard input: from now on requests are taken and not answered, so that
 * whoever made one waits in the kernel (state D) and no signal ends it; "answer": those that wait
 * are answered, and so are all others. Each line is acknowledged by one of standard output. Its
 * end: the mount is gone.
 *
 * The kernel's side of FUSE as <linux/fuse.h> has it, without a library. Needs a mount namespace.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST = 128, REQUEST = 192 << 10, WRITE = 64 << 10, ROOT = FUSE_ROOT_ID };

struct fs {
	int dev;
	char **file;
	unsigned int n;
	bool hanging;
	char *held[MOST];
	unsigned int n_held;
};

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void reply(const struct fs *fs, uint64_t unique, int error, const void *data, size_t len)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + len), .error = error, .unique = unique};
	struct iovec parts[2] = {{&out, sizeof(out)}, {(void *)(uintptr_t)data, len}};

	/* Who asked may be gone by now. */
	(void)!writev(fs->dev, parts, len ? 2 : 1);
}

static int attributes(const struct fs *fs, uint64_t node, struct fuse_attr *ret)
{
	struct stat st;

	*ret = (struct fuse_attr){.ino = node, .mode = S_IFDIR | 0755, .nlink = 2, .blksize = 4096};
	if (node == ROOT)
		return 0;
	if (node > ROOT + fs->n || stat(fs->file[node - ROOT - 1], &st))
		return -ENOENT;
	ret->mode = S_IFREG | 0644;
	ret->nlink = 1;
	ret->size = (uint64_t)st.st_size;
	ret->mtime = (uint64_t)st.st_mtime;
	return 0;
}

static void look_up(const struct fs *fs, uint64_t unique, const char *name)
{
	struct fuse_entry_out out = {0};

	for (unsigned int i = 0; i < fs->n; i++) {
		if (strcmp(name, name_of(fs->file[i])) != 0)
			continue;
		out.nodeid = ROOT + 1 + i;
		if (attributes(fs, out.nodeid, &out.attr))
			break;
		reply(fs, unique, 0, &out, sizeof(out));
		return;
	}
	reply(fs, unique, -ENOENT, NULL, 0);
}

static void read_dir(const struct fs *fs, uint64_t unique, const struct fuse_read_in *in)
{
	char buf[4096];
	size_t len = 0;

	for (uint64_t i = in->offset; i < fs->n; i++) {
		const char *name = name_of(fs->file[i]);
		struct fuse_dirent d = {.ino = ROOT + 1 + i,
					.off = i + 1,
					.namelen = (uint32_t)strlen(name),
					.type = DT_REG};
		size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + d.namelen);

		if (len + size > sizeof(buf) || len + size > in->size)
			break;
		memset(buf + len, 0, size);
		memcpy(buf + len, &d, FUSE_NAME_OFFSET);
		memcpy(buf + len + FUSE_NAME_OFFSET, name, d.namelen);
		len += size;
	}
	reply(fs, unique, 0, buf, len);
}

static void read_file(const struct fs *fs, uint64_t unique, uint64_t node,
		      const struct fuse_read_in *in)
{
	static char buf[REQUEST];
	size_t size = in->size < sizeof(buf) ? in->size : sizeof(buf);
	int fd = node > ROOT && node <= ROOT + fs->n ? open(fs->file[node - ROOT - 1], O_RDONLY)
						     : -1;
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, size, (off_t)in->offset);

	if (fd >= 0)
		close(fd);
	reply(fs, unique, n < 0 ? -EIO : 0, buf, n < 0 ? 0 : (size_t)n);
}

static void init(const struct fs *fs, uint64_t unique, const struct fuse_init_in *in)
{
	struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
				    .minor = FUSE_KERNEL_MINOR_VERSION,
				    .max_readahead = in->max_readahead,
				    .max_background = 16,
				    .congestion_threshold = 12,
				    .max_write = WRITE,
				    .time_gran = 1};

	reply(fs, unique, 0, &out, sizeof(out));
}

static void answer(const struct fs *fs, const char *request)
{
	const struct fuse_in_header *in = (const void *)request;
	const void *arg = in + 1;
	struct fuse_attr_out attr = {0};
	struct fuse_open_out opened = {.open_flags = FOPEN_DIRECT_IO};
	struct fuse_statfs_out statfs = {.st = {.bsize = 4096, .namelen = 255}};
	int r;

	switch (in->opcode) {
	case FUSE_INIT:
		init(fs, in->unique, arg);
		break;
	case FUSE_LOOKUP:
		look_up(fs, in->unique, arg);
		break;
	case FUSE_GETATTR:
		r = attributes(fs, in->nodeid, &attr.attr);
		reply(fs, in->unique, r, &attr, r ? 0 : sizeof(attr));
		break;
	case FUSE_OPENDIR:
		opened.open_flags = 0;
		/* fallthrough */
	case FUSE_OPEN:
		reply(fs, in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READDIR:
		read_dir(fs, in->unique, arg);
		break;
	case FUSE_READ:
		read_file(fs, in->unique, in->nodeid, arg);
		break;
	case FUSE_STATFS:
		reply(fs, in->unique, 0, &statfs, sizeof(statfs));
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
	case FUSE_ACCESS:
		reply(fs, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: /* one that waits goes on waiting */
		break;
	default:
		reply(fs, in->unique, -ENOSYS, NULL, 0);
	}
}

static bool serve(struct fs *fs)
{
	static char buf[REQUEST];
	ssize_t n = read(fs->dev, buf, sizeof(buf));
	const struct fuse_in_header *in = (const void *)buf;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN || errno == ENOENT;
	if (!fs->hanging) {
		answer(fs, buf);
	} else if (in->opcode != FUSE_FORGET && in->opcode != FUSE_BATCH_FORGET &&
		   in->opcode != FUSE_INTERRUPT && fs->n_held < MOST) {
		fs->held[fs->n_held] = malloc((size_t)n);
		if (fs->held[fs->n_held])
			memcpy(fs->held[fs->n_held++], buf, (size_t)n);
	}
	return true;
}

static bool obey(struct fs *fs)
{
	char line[32];

	if (!fgets(line, sizeof(line), stdin))
		return false;
	fs->hanging = !strcmp(line, "hang\n");
	while (!fs->hanging && fs->n_held) {
		char *request = fs->held[--fs->n_held];

		answer(fs, request);
		free(request);
	}
	printf("%s", line);
	return !fflush(stdout);
}

int main(int argc, char **argv)
{
	struct fs fs = {.file = argv + 1, .n = (unsigned int)(argc > 2 ? argc - 2 : 0)};
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
	char options[96];

	if (argc < 3)
		return 64;
	setvbuf(stdin, NULL, _IONBF, 0);
	fs.dev = p[1].fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fs.dev < 0) {
		fprintf(stderr, "/dev/fuse: %s\n", strerror(errno));
		return 77;
	}
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fs.dev);
	if (mount("hangfs", argv[argc - 1], "fuse", MS_NOSUID | MS_NODEV, options)) {
		fprintf(stderr, "FUSE cannot be mounted: %s\n", strerror(errno));
		return 77;
	}
	printf("mounted\n");
	fflush(stdout);
	while (poll(p, 2, -1) >= 0 || errno == EINTR) {
		if (p[1].revents && !serve(&fs))
			break;
		if (p[0].revents && !obey(&fs))
			break;
	}
	return 0;
}

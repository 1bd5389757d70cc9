/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/render.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/render_parts.h"
#include "base/banned.h"

static void title(const struct pp_profile *p, struct pp_buf *ret)
{
	pp_buf_printf(ret, "# peerpath profile %s: %s\n# SHA-256 %s\n", p->name, p->title,
		      p->sha256);
}

static void needs(const struct pp_profile *p, struct pp_buf *ret)
{
	pp_buf_str(ret, "# It needs, and this does not install:\n");
	for (unsigned int i = 0; i < p->n_needs; i++)
		pp_buf_printf(ret, "#   %s%s%s\n", p->need[i].when.text,
			      p->need[i].install ? ": " : "",
			      p->need[i].install ? p->need[i].install : "");
}

/* As they are, one below the other. */
static void files(const struct pp_profile *p, struct pp_buf *ret)
{
	title(p, ret);
	needs(p, ret);
	for (unsigned int i = 0; i < p->n_files; i++) {
		const struct pp_profile_file *f = &p->file[i];

		pp_buf_printf(ret, "\n# %s %s", pp_profile_action_name(f->action), f->path);
		if (f->action == PP_PROFILE_WRITE)
			pp_buf_printf(ret, " (%04o)", f->mode);
		pp_buf_printf(ret, "\n%s", f->text);
	}
}

/* A scalar of YAML that needs no thought: JSON's form is one of them. */
static void quoted(const char *text, struct pp_buf *ret)
{
	pp_buf_char(ret, '"');
	for (; *text; text++) {
		if (*text == '\n')
			pp_buf_str(ret, "\\n");
		else if (*text == '\t')
			pp_buf_str(ret, "\\t");
		else if (*text == '"' || *text == '\\')
			pp_buf_printf(ret, "\\%c", *text);
		else
			pp_buf_char(ret, *text);
	}
	pp_buf_char(ret, '"');
}

static void task(const char *name, const char *path, const char *module, struct pp_buf *ret)
{
	pp_buf_str(ret, "\n- name: ");
	quoted(name, ret);
	pp_buf_printf(ret, "\n  %s:\n    path: ", module);
	quoted(path, ret);
	pp_buf_char(ret, '\n');
}

/* Each key a task: other lines of the file are not this profile's. */
static void ansible_set(const struct pp_profile_file *f, struct pp_buf *ret)
{
	char name[64], pattern[160];
	size_t key, len;

	for (const char *at = f->text; *at; at += len + 1) {
		len = strcspn(at, "\n");
		key = strcspn(at, "=");
		(void)snprintf(name, sizeof(name), "%.*s", (int)(key < 63 ? key : 63), at);
		task(name, f->path, "ansible.builtin.lineinfile", ret);
		(void)snprintf(pattern, sizeof(pattern), "^%.*s=", (int)key, at);
		pp_buf_str(ret, "    create: true\n    mode: \"0644\"\n    regexp: ");
		quoted(pattern, ret);
		pp_buf_printf(ret, "\n    line: \"%.*s\"\n", (int)len, at);
	}
}

static void ansible_write(const struct pp_profile_file *f, struct pp_buf *ret)
{
	char dir[PP_SPOT_PATH + 1];

	(void)snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(f->path, '/') - f->path), f->path);
	task(f->spot->name, dir, "ansible.builtin.file", ret);
	pp_buf_str(ret, "    state: directory\n");
	pp_buf_str(ret, "\n- name: ");
	quoted(f->why ? f->why : f->path, ret);
	pp_buf_str(ret, "\n  ansible.builtin.copy:\n    dest: ");
	quoted(f->path, ret);
	pp_buf_printf(ret, "\n    owner: root\n    group: root\n    mode: \"%04o\"\n    content: ",
		      f->mode);
	quoted(f->text, ret);
	pp_buf_char(ret, '\n');
}

/* What is to be done by hand, of each kind of place once. */
static void effects(const struct pp_profile *p, struct pp_buf *ret)
{
	const struct pp_spot *s;
	bool used;

	pp_buf_str(ret, "# Then, by hand:\n");
	for (unsigned int i = 0; (s = pp_spot_at(i)); i++) {
		used = false;
		for (unsigned int k = 0; k < p->n_files; k++)
			used |= p->file[k].spot == s && p->file[k].action != PP_PROFILE_KEEP;
		if (used)
			pp_buf_printf(ret, "#   %s (%s): %s\n", s->name, pp_effect_name(s->effect),
				      s->how);
	}
}

static void ansible(const struct pp_profile *p, struct pp_buf *ret)
{
	title(p, ret);
	pp_buf_str(ret, "# Tasks of a role. Nothing is loaded or restarted here.\n");
	needs(p, ret);
	effects(p, ret);
	for (unsigned int i = 0; i < p->n_files; i++) {
		const struct pp_profile_file *f = &p->file[i];

		switch (f->action) {
		case PP_PROFILE_WRITE:
			ansible_write(f, ret);
			break;
		case PP_PROFILE_SET:
			ansible_set(f, ret);
			break;
		case PP_PROFILE_ABSENT:
			task(f->why ? f->why : f->path, f->path, "ansible.builtin.file", ret);
			pp_buf_str(ret, "    state: absent\n");
			break;
		case PP_PROFILE_KEEP:
			pp_buf_printf(ret, "\n# %s stays as it is\n", f->path);
			break;
		}
	}
}

/* A mark that is no line of the text. */
static void here_document(const struct pp_profile_file *f, struct pp_buf *ret)
{
	char mark[32], line[40];
	unsigned int n = 0;

	do {
		(void)snprintf(mark, sizeof(mark), "PEERPATH%u", n++);
		(void)snprintf(line, sizeof(line), "%s\n", mark);
	} while (strstr(f->text, line) && n < 1000);
	pp_buf_printf(ret, "COPY --chmod=%04o <<'%s' %s\n%s%s\n", f->mode, mark, f->path, f->text,
		      mark);
}

static void image_set(const struct pp_profile_file *f, struct pp_buf *ret)
{
	size_t len;

	for (const char *at = f->text; *at; at += len + 1) {
		len = strcspn(at, "\n");
		pp_buf_printf(ret, "RUN touch %s && sed -i -e '/^%.*s=/d' %s && echo '%.*s' >>%s\n",
			      f->path, (int)strcspn(at, "="), at, f->path, (int)len, at, f->path);
	}
}

static void image(const struct pp_profile *p, struct pp_buf *ret)
{
	title(p, ret);
	pp_buf_str(ret,
		   "# Lines of a Containerfile (an image that is booted). A root in a directory is "
		   "simpler:\n#   peerpath profile apply ");
	pp_buf_printf(ret, "%s --root DIR\n", p->name);
	needs(p, ret);
	for (unsigned int i = 0; i < p->n_files; i++) {
		const struct pp_profile_file *f = &p->file[i];

		if (f->action == PP_PROFILE_WRITE)
			here_document(f, ret);
		else if (f->action == PP_PROFILE_SET)
			image_set(f, ret);
		else if (f->action == PP_PROFILE_ABSENT)
			pp_buf_printf(ret, "RUN rm -f %s\n", f->path);
		else
			pp_buf_printf(ret, "# %s stays as it is\n", f->path);
	}
}

int pp_render_parse(const char *word, enum pp_render *ret)
{
	static const char *const words[] = {"files", "ansible", "image", "kubernetes"};

	for (unsigned int i = 0; i < PP_ARRAY_LEN(words); i++)
		if (!strcmp(words[i], word)) {
			*ret = (enum pp_render)i;
			return 0;
		}
	return -EINVAL;
}

void pp_render(const struct pp_profile *p, enum pp_render how, struct pp_buf *ret)
{
	static void (*const renderers[])(const struct pp_profile *, struct pp_buf *) = {
		files, ansible, image, pp_render_kubernetes};

	renderers[how](p, ret);
}

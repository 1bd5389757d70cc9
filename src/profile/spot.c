/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/spot.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

static const struct pp_spot spots[] = {
	{"modprobe.d", "/etc/modprobe.d/", ".conf", false, PP_EFFECT_REBOOT,
	 "rebuild the initramfs where it loads the module (update-initramfs -u, dracut -f), then "
	 "reboot: options are read when a module is loaded"},
	{"modules-load.d", "/etc/modules-load.d/", ".conf", false, PP_EFFECT_RELOAD,
	 "systemctl restart systemd-modules-load.service, or reboot"},
	{"command line", "/etc/default/grub.d/", ".cfg", false, PP_EFFECT_REBOOT,
	 "update-grub where it reads /etc/default/grub.d (Debian, Ubuntu), grubby "
	 "--update-kernel=ALL --args=... elsewhere; then reboot"},
	{"sysctl.d", "/etc/sysctl.d/", ".conf", false, PP_EFFECT_RELOAD, "sysctl --system"},
	{"limits.d", "/etc/security/limits.d/", ".conf", false, PP_EFFECT_RELOAD,
	 "log in again: pam_limits sets them at the start of a session"},
	{"system.conf.d", "/etc/systemd/system.conf.d/", ".conf", false, PP_EFFECT_RELOAD,
	 "systemctl daemon-reexec, then restart the services that start jobs (slurmd, containerd, "
	 "kubelet)"},
	{"nccl.conf", "/etc/nccl.conf", NULL, true, PP_EFFECT_JOBS,
	 "start jobs anew: NCCL reads it when it is initialised"},
	{"environment.d", "/etc/environment.d/", ".conf", true, PP_EFFECT_RELOAD,
	 "log in again: systemd reads it for user sessions; give jobs of a scheduler and pods the "
	 "same variables"},
};

static bool is_name(const char *name, size_t len)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";

	return len && name[0] != '.' && name[0] != '-' && strspn(name, letters) == len;
}

static bool holds(const struct pp_spot *s, const char *path)
{
	size_t before = strlen(s->before), len = strlen(path), after;

	if (!s->after)
		return !strcmp(path, s->before);
	after = strlen(s->after);
	return len > before + after && !memcmp(path, s->before, before) &&
	       !strcmp(path + len - after, s->after) && is_name(path + before, len - before);
}

const struct pp_spot *pp_spot_find(const char *path)
{
	for (size_t i = 0; strlen(path) <= PP_SPOT_PATH && i < PP_ARRAY_LEN(spots); i++)
		if (holds(&spots[i], path))
			return &spots[i];
	return NULL;
}

const struct pp_spot *pp_spot_at(unsigned int i)
{
	return i < PP_ARRAY_LEN(spots) ? &spots[i] : NULL;
}

const char *pp_effect_name(enum pp_effect e)
{
	static const char *const names[] = {"new jobs", "reload", "reboot"};

	return names[e];
}

import { join } from 'node:path'
import { optionalNames } from '../../core/optional-file.ts'
import { resolvedPathAt } from './resolved-paths.ts'

/** Programs and libraries, and /sys, which describes devices and memory limits. */
export const inEveryView: ReadonlySet<string> = new Set(
  ['usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32', 'opt', 'nix', 'gnu', 'sys'].map(name => `/${name}`),
)

/** Folders with secrets, users' files or sockets of other services: only selected paths in them are shown. */
const reserved = new Set(
  ['boot', 'dev', 'etc', 'home', 'lost+found', 'proc', 'root', 'run', 'sys', 'tmp', 'var'].map(name => `/${name}`),
)

/** Whether a folder in `/` is shown at the level `files`: all but the reserved ones, such as /models, /srv and /mnt. */
export const onlyInFiles = (path: string): boolean => !reserved.has(path)

const configuration = [
  'alternatives ca-certificates crypto-policies fonts ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf',
  'localtime machine-id mime.types os-release pki/ca-trust pki/tls/certs ssl/cert.pem ssl/certs ssl/openssl.cnf static',
  'timezone',
  // Names of users, hosts and services.
  'group host.conf hostname hosts nsswitch.conf passwd protocols resolv.conf services',
  // GPU drivers.
  'OpenCL egl glvnd nvidia nvidia-container-runtime vulkan',
].flatMap(names => names.split(' '))
const runtime = ['/run/current-system', '/run/opengl-driver', '/run/nvidia-persistenced', '/var/cache/fontconfig']

/**
 * NVIDIA GPUs with MIG and NVLink devices, DRM devices, AMD and Windows (WSL) compute, Tegra, and InfiniBand for
 * traffic between GPUs.
 */
const device = /^(nvidia.*|dri|kfd|dxg|nvhost-.*|nvmap|nvgpu|mali\d*|accel|davinci.*|infiniband)$/
const controls = ['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus', '/proc/acpi', '/proc/scsi']

/**
 * Finds the paths of this machine that engines may need, at each launch. Takes less than a millisecond. `dev` is the
 * folder of devices.
 */
export function readSystem({ dev = '/dev' } = {}) {
  const present = (paths: string[]) => paths.flatMap(path => resolvedPathAt(path) ?? [])
  return {
    /** Folders in `/`. */
    roots: present(optionalNames('/').map(name => `/${name}`)).filter(({ file }) => !file),
    /** Files of /etc that programs need. */
    configuration: present(configuration.map(name => join('/etc', name))),
    /** Needed paths in folders that are otherwise hidden. */
    runtime: present(runtime),
    devices: optionalNames(dev)
      .filter(name => device.test(name))
      .flatMap(name => {
        const resolved = resolvedPathAt(join(dev, name))
        return resolved ? [{ ...resolved, path: join('/dev', name) }] : []
      }),
    /** Parts of /proc that control the machine. */
    controls: present(controls),
  }
}

export type SandboxSystem = ReturnType<typeof readSystem>

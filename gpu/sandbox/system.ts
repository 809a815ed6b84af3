import { basename, join } from 'node:path'
import { optionalNames, optionalText } from '../../core/optional-file.ts'
import type { ResolvedPath } from './mount.ts'
import { resolvedPathAt } from './resolved-paths.ts'

/**
 * The folders in `/` that engines see: programs and libraries, and /sys, which describes devices and memory limits. What
 * another folder is for, such as /backup or /srv, only the operator knows, who names it.
 */
const roots = ['usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32', 'opt', 'nix', 'gnu', 'sys'].map(
  name => `/${name}`,
)

const configuration = [
  'alternatives ca-certificates crypto-policies fonts ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf',
  'localtime machine-id mime.types os-release pki/ca-trust pki/tls/certs ssl/cert.pem ssl/certs ssl/openssl.cnf static',
  'timezone',
  // Names of users, hosts and services.
  'group host.conf hostname hosts nsswitch.conf passwd protocols resolv.conf services',
  // GPU drivers.
  'OpenCL egl glvnd nvidia nvidia-container-runtime vulkan',
].flatMap(names => names.split(' '))

/** CUDA, and the folders in which the dynamic linker searches for libraries: some machines keep them on another disk. */
const libraryFolders = (): string[] => [
  '/usr/local/cuda',
  ...['/etc/ld.so.conf', ...optionalNames('/etc/ld.so.conf.d').map(name => join('/etc/ld.so.conf.d', name))].flatMap(
    file => (file.endsWith('.conf') && optionalText(file)?.match(/^\/.*\S/gm)) || [],
  ),
]

const runtime = ['/run/current-system', '/run/opengl-driver', '/run/nvidia-persistenced', '/var/cache/fontconfig']

/** Groups of files in /dev by which drivers reach cards. */
export type DeviceFiles = 'nvidia' | 'kfd' | 'dri'

const deviceFiles: Record<DeviceFiles, RegExp> = {
  /** GPUs with MIG and NVLink devices, Windows (WSL), Tegra. */
  nvidia: /^(nvidia.*|dxg|nvhost-.*|nvmap|nvgpu)$/,
  /** AMD's compute. */
  kfd: /^kfd$/,
  dri: /^dri$/,
}
/** Accelerators that infer does not find, so every engine sees them, and InfiniBand for traffic between GPUs. */
const otherDevice = /^(mali\d*|accel|davinci.*|infiniband)$/
const controls = ['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus', '/proc/acpi', '/proc/scsi']

/**
 * Finds the paths of this machine that an engine may need, at each launch. Takes a few milliseconds. `devices`: the
 * device files that it needs for its cards. `dev` is the folder of devices.
 */
export async function readSystem({ devices = [], dev = '/dev' }: SystemOptions = {}) {
  const present = async (paths: string[]): Promise<ResolvedPath[]> =>
    (await Array.fromAsync(paths, path => resolvedPathAt(path))).filter(found => found !== undefined)
  const cardFiles = optionalNames(dev).filter(name =>
    [otherDevice, ...devices.map(group => deviceFiles[group])].some(pattern => pattern.test(name)),
  )
  const libraries = await present(libraryFolders())
  return {
    roots: (await present(roots)).filter(({ file }) => !file),
    /** Files of /etc that programs need. */
    configuration: await present(configuration.map(name => join('/etc', name))),
    /** Needed paths in folders that are otherwise hidden. */
    runtime: [
      ...(await present(runtime)),
      ...libraries.flatMap(resolved => [resolved, { ...resolved, path: resolved.real }]),
    ],
    devices: (await present(cardFiles.map(name => join(dev, name)))).map(resolved => ({
      ...resolved,
      path: join('/dev', basename(resolved.path)),
    })),
    /** Parts of /proc that control the machine. */
    controls: await present(controls),
  }
}

interface SystemOptions {
  devices?: readonly DeviceFiles[]
  dev?: string
}

export type SandboxSystem = Awaited<ReturnType<typeof readSystem>>

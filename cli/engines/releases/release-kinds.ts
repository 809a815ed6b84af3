/** What a build of a release computes on. */
export const releaseBackends = ['cpu', 'cuda', 'rocm', 'vulkan'] as const
export type ReleaseBackend = (typeof releaseBackends)[number]

/** A file of a release that is for Linux, as its name describes it. */
export interface Build {
  file: string
  backend: ReleaseBackend
  /** Version of CUDA or ROCm for which it was made; empty for others, or where the name has none. */
  backendVersion: string
  architecture: 'x64' | 'arm64'
}

/** An engine whose maker publishes programs that are ready to run. */
export interface ReleaseKind {
  name: 'llama-server' | 'sd-server'
  /** The name of the project. */
  title: string
  /** Owner and name at GitHub. */
  repository: string
  license: string
  /** A file of releases without programs: its text is the tag of the release that has them. */
  pointer?: string
  /** Describes the archive of a program; undefined for other files. Pure. */
  build(file: string): Build | undefined
  /** Describes an archive of libraries that the program of a build needs beside it. Pure. */
  libraries?(file: string): Build | undefined
}

const archive = String.raw`\.(?:tar\.gz|tgz|zip)$`
const architectures: Readonly<Record<string, Build['architecture']>> = {
  x64: 'x64',
  x86_64: 'x64',
  amd64: 'x64',
  arm64: 'arm64',
  aarch64: 'arm64',
}

function described(file: string, pattern: RegExp): Build | undefined {
  const { backend = 'cpu', version = '', architecture = '' } = pattern.exec(file)?.groups ?? {}
  const known = architectures[architecture]
  const name = releaseBackends.find(one => one === backend)
  return known && name ? { file, backend: name, backendVersion: version, architecture: known } : undefined
}

const ofLlama = String.raw`bin-ubuntu-(?:(?<backend>[a-z]+)(?:-(?<version>\d[\d.]*))?-)?(?<architecture>[a-z]\w+)${archive}`

/** Names of files: those of llama.cpp b11101 and of stable-diffusion.cpp master-929, of October 2026, and of earlier ones. */
export const releaseKinds: Readonly<Record<ReleaseKind['name'], ReleaseKind>> = {
  'llama-server': {
    name: 'llama-server',
    title: 'llama.cpp',
    repository: 'ggml-org/llama.cpp',
    license: 'MIT',
    pointer: 'nightly-tag.txt',
    build: file => described(file, new RegExp(`^llama-[^-]+-${ofLlama}`)),
    libraries: file => described(file, new RegExp(`^cudart-llama-(?:[^-]+-)?${ofLlama}`)),
  },
  'sd-server': {
    name: 'sd-server',
    title: 'stable-diffusion.cpp',
    repository: 'leejet/stable-diffusion.cpp',
    license: 'MIT',
    build: file =>
      described(
        file,
        new RegExp(
          String.raw`^sd-.+-bin-Linux-.+-(?<architecture>x86_64|aarch64|arm64)(?:-(?<backend>[a-z]+)-?(?<version>\d[\d.]*)?)?${archive}`,
        ),
      ),
  },
}

/** Names of releases, as they are used for folders. */
export const releaseName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/
